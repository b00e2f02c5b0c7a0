// Package metrics measures from outside: it wraps the ports and listens to what
// the parts report, and no part knows of it. Everything is kept in a registry of
// its own, and no label takes a value that a sender can choose.
//
//	m := metrics.New()
//	log := m.Observe(store, clock, ids)              // instead of the store itself
//	engine.Config{Log: log, Observer: metrics.Observers(m, other)}
//	telegram.Config{Observe: m.Delivered}
//	ingress.Config{Metrics: m.Handler(), Checks: []ingress.Check{{Name: "log", Probe: log.Writable}}}
package metrics
