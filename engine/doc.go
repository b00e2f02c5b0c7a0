// Package engine turns accepted updates into at most one lead each.
//
// One update is one job, and one job is one stream of events. Accept writes its
// first event before the update is acknowledged. From then on Advance takes the
// job one step at a time, and each step is the same three moves: fold the
// stream into a state, decide from the state, append what was decided at the
// revision that was read. Whoever lost the race for that revision reads again.
//
//	pending ── claim ──▶ claimed ── call ──▶ the CRM
//	   ▲                    │
//	   └── not applied ─────┤ record
//	                        ├── its id ─────▶ done
//	                        ├── refused ────▶ dead_letter
//	                        └── unknown ────▶ repeated, if the CRM makes that
//	                                          safe; else needs_reconciliation
//
// The claim is written before the request may leave. So a process that dies, or
// an answer that is lost, leaves a claim behind that expires, and an expired
// claim says: perhaps. What follows from "perhaps" depends only on what the CRM
// guarantees (crm.Class), never on hope.
//
// A lead may take several effects, such as a contact and then the lead: then each has
// its own claim, and the job goes on to the next when one is confirmed.
//
// No step needs memory of an earlier one: any process may take any job. The
// Agenda finds the jobs that are due by reading the log itself. The package is
// plain blocking code over its ports, without goroutines, timers or locks, so
// that a scheduler can drive it step by step.
package engine
