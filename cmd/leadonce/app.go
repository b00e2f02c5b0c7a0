package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/audit"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/ingress"
	"github.com/leadonce/leadonce/ingress/metrics"
	longpoll "github.com/leadonce/leadonce/ingress/poll"
	"github.com/leadonce/leadonce/ingress/reply"
	"github.com/leadonce/leadonce/projections"
)

// app is the whole program as `serve` runs it; tests boot the same one.
type app struct {
	config  config
	logger  *slog.Logger
	log     eventlog.Log
	models  *projections.Store
	runner  *runner
	server  *http.Server
	lag     lagWatch
	poll    *longpoll.Config // nil: updates are delivered
	fetches *longpoll.Watch  // of poll
	replies []reply.Config   // one a bot that replies
	trust   trust
	about   map[string]string // told by readyz
	closers []func() error    // in the order of opening
}

// newApp opens everything and starts nothing. The configuration is checked.
func newApp(ctx context.Context, c config, logger *slog.Logger) (*app, error) {
	a := &app{config: c, logger: logger}
	if err := a.open(ctx); err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

func (a *app) open(ctx context.Context) error {
	if err := a.checkTrust(); err != nil {
		return err
	}
	isNew := a.config.lacksLog()
	log, closeLog, err := openLog(ctx, a.config, true, a.logger)
	if err != nil {
		return err
	}
	if isNew {
		a.logger.Warn("a new log is made, for there was none; if leadonce has run before, its log is elsewhere: name its folder with --data-dir",
			"log", filepath.Join(absolute(a.config.DataDir), logFile))
	}
	a.closers = append(a.closers, closeLog)
	if err := a.checkSameLog(ctx, log); err != nil {
		return err
	}
	options := projections.Options{
		Reset: func(reason string) { a.logger.Warn("the read models are built anew", "reason", reason) },
	}
	models, closeModels, err := openModels(ctx, a.config, options)
	if errors.Is(err, projections.ErrDamaged) {
		options.SetAside = true // lists for people must not hold up the intake
		models, closeModels, err = openModels(ctx, a.config, options)
	}
	if err != nil {
		return err
	}
	a.models = models
	a.closers = append(a.closers, closeModels)

	clock, ids, m := systemClock{}, randomIDs{}, metrics.New()
	observed := m.Observe(log, clock, ids)
	a.log = observed
	connector, err := newConnector(a.config)
	if err != nil {
		return a.config.sources.place(asMistake(err))
	}
	if warning := clearText(connector); warning != "" && a.config.Role != roleIngress {
		a.logger.Warn(warning)
	}
	observer := metrics.Observers(jobLogger{a.logger, log}, m)
	e, err := engine.New(engine.Config{
		Log: observed, CRM: connector, Clock: clock, IDs: ids, Observer: observer,
		Plan: a.config.plan(), Policy: a.config.policy(), Worker: workerName(),
	})
	if err != nil {
		return mistake("%v", err)
	}
	workers := a.config.Workers
	if a.config.Role == roleIngress {
		workers = 0
	}
	a.runner = newRunner(e, observer, workers, a.snapshotPath(), a.sweepProgress)
	a.lag = lagWatch{models: a.models, log: log}
	m.Serve(metrics.Gauges{
		Backlog:       a.runner.Backlog,
		OldestOpenJob: a.oldestOpenJob,
		ProjectionLag: map[string]func() time.Duration{"jobs": a.lag.lag},
	})
	if err := a.openReplies(m); err != nil {
		return err
	}
	return a.openServer(e, observed, m)
}

// checkTrust refuses a class that is not certified, unless it is to be trusted. A
// process that makes no leads has no need of it.
func (a *app) checkTrust() (err error) {
	if a.config.Role == roleIngress {
		return nil
	}
	if a.trust, err = a.config.checkTrust(); err != nil {
		return err
	}
	a.about = map[string]string{"crm": a.trust.text}
	return nil
}

// tellTrust says in the log how far the declared class is known to be true.
func (a *app) tellTrust() {
	switch {
	case a.config.Role == roleIngress:
	case a.trust.certified:
		a.logger.Info("crm: " + a.trust.text)
	default:
		a.logger.Warn("crm: " + a.trust.text + "; if it is wrong, leads are doubled")
	}
}

func (a *app) openServer(e *engine.Engine, observed *metrics.Log, m *metrics.Metrics) error {
	handler, err := a.intake(e, m)
	if err != nil {
		return err
	}
	checks := []ingress.Check{{Name: "log", Probe: observed.Writable}, {Name: "jobs", Probe: a.jobsKnown}}
	if a.fetches != nil {
		checks = append(checks, ingress.Check{Name: "poll", Probe: a.fetches.Probe})
	}
	if a.config.Role != roleIngress { // lists for people must not take deliveries away from it
		checks = append(checks, ingress.Check{Name: "projections", Probe: a.lag.probe})
	}
	parts := ingress.Config{Telegram: handler, Metrics: m.Handler(), Logger: a.logger, Checks: checks, About: a.about}
	if a.poll != nil {
		parts.NoTelegram = "this process takes no deliveries: it fetches the updates itself; run `leadonce webhook delete`, or serve without --poll"
	}
	a.server, err = ingress.Server(ingress.ServerConfig{
		Address: a.config.Listen, CertFile: a.config.TLS.CertFile, KeyFile: a.config.TLS.KeyFile, Logger: a.logger,
	}, ingress.Router(parts))
	if err != nil {
		return mistake("tls: %v", err)
	}
	return nil
}

// workerName names the process in its claims. engine/peers.go tells the processes of
// one log apart by it, so no two of them should have the same.
func workerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + "-" + strconv.Itoa(os.Getpid())
}

func (a *app) snapshotPath() string {
	if a.config.Log == logMemory {
		return ""
	}
	return filepath.Join(a.config.DataDir, snapshotFile)
}

// checkSameLog refuses a log that lacks what an earlier run has seen in it: leads
// may have been made of which it knows nothing.
func (a *app) checkSameLog(ctx context.Context, log eventlog.Log) error {
	data, err := os.ReadFile(a.snapshotPath())
	if err != nil {
		return nil // none, or none that can be used
	}
	if cut, err := audit.Cut(ctx, log, data); cut && err == nil {
		return mistake("%s: the agenda's snapshot names an event that the log does not have: it was restored, cut or replaced, or the folder was that of another log. If the log was restored, run `leadonce job doubt --by WHO --reason WHY`, so that nothing is sent twice; if it was moved, give it an empty data_dir", a.snapshotPath())
	}
	return nil
}

func (a *app) sweepProgress(events int) {
	if events%100_000 == 0 {
		a.logger.Info("reading the log for open jobs", "events", events)
	}
}

func (a *app) jobsKnown(context.Context) error {
	select {
	case <-a.runner.Ready():
		return a.runner.Health()
	default:
		return errors.New("still reading the log for open jobs")
	}
}

func (a *app) oldestOpenJob() time.Duration {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	counts, err := a.models.Counts(ctx)
	if err != nil {
		return 0
	}
	var oldest time.Duration
	for _, accepted := range counts.Oldest {
		oldest = max(oldest, time.Since(accepted))
	}
	return oldest
}

// run serves until ctx ends: then it accepts no more, lets the jobs in hand
// finish, and closes everything. listener's address is the one to deliver to.
func (a *app) run(ctx context.Context, listener net.Listener) error {
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	calls, cutCalls := context.WithCancel(context.WithoutCancel(ctx))
	defer cutCalls()
	var parts sync.WaitGroup
	parts.Go(func() { a.runner.Run(work, calls) })
	parts.Go(func() { a.project(work) })
	for _, c := range a.replies {
		parts.Go(func() { a.reply(work, calls, c) })
	}
	if a.config.Role == roleWorker {
		parts.Go(func() { a.watch(work) })
	}
	served := make(chan error, 2)
	go func() { served <- ingress.Serve(a.server, listener) }()
	if a.poll != nil {
		parts.Go(func() {
			if err := longpoll.Run(ctx, *a.poll); err != nil {
				served <- err
			}
		})
	}

	grace := a.config.CallTimeout + a.config.policy().LeaseMargin()
	var failure error
	select {
	case <-ctx.Done():
		a.logger.Info("stopping: no more updates are accepted, jobs in hand are finished; a second signal ends it at once", "calls_at_most", grace)
	case failure = <-served:
	}
	// No new job from here on, so that the calls in hand have all of the grace,
	// however long a slow delivery takes.
	stopWork()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := a.server.Shutdown(stopping); err != nil {
		a.logger.Warn("deliveries were cut", "error", err)
	}
	cut := context.AfterFunc(stopping, cutCalls)
	parts.Wait()
	cut()
	return errors.Join(failure, a.close())
}

// watch wakes the runner of a process that has no intake for what others append. What
// it misses, the next sweep finds.
func (a *app) watch(ctx context.Context) {
	wake := func(context.Context, eventlog.Recorded) error {
		a.runner.Wake()
		return nil
	}
	for ctx.Err() == nil {
		tail, err := a.log.Tail(ctx)
		if err == nil {
			err = a.log.Subscribe(ctx, tail, wake)
		}
		if err != nil && ctx.Err() == nil {
			_ = systemClock{}.Sleep(ctx, engine.TroublePause)
		}
	}
}

// project keeps the read models up to date. Their trouble is shown by readyz and
// the log, and holds up no job.
func (a *app) project(ctx context.Context) {
	for ctx.Err() == nil {
		if err := a.models.Follow(ctx, a.log); err != nil && ctx.Err() == nil {
			a.logger.Error("the read models stand still, they are tried again", "error", err)
			_ = systemClock{}.Sleep(ctx, engine.TroublePause)
		}
	}
}

func (a *app) close() error {
	var failures []error
	for i := len(a.closers) - 1; i >= 0; i-- {
		failures = append(failures, a.closers[i]())
	}
	a.closers = nil
	return errors.Join(failures...)
}

// lagWatch judges whether the read models keep up.
type lagWatch struct {
	models *projections.Store
	log    eventlog.Log
}

// tolerableLag is how old the oldest event that is not projected may be.
const tolerableLag = 15 * time.Second

func (w lagWatch) lag() time.Duration {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	lag, err := w.models.Behind(ctx, w.log)
	if err != nil || !lag.Behind {
		return 0
	}
	return time.Since(lag.Since)
}

func (w lagWatch) probe(ctx context.Context) error {
	lag, err := w.models.Behind(ctx, w.log)
	if err != nil {
		return err
	}
	if lag.Behind && time.Since(lag.Since) > tolerableLag {
		return fmt.Errorf("%s behind the log", time.Since(lag.Since).Round(time.Second))
	}
	return nil
}
