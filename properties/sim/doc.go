// Package sim runs the engine in a world that fails in every way the field has
// shown, one call at a time.
//
// The code that runs is the production code: the engine, its agenda, the webhook
// handler, the memory log, and the connector, with the description of the CRM that
// ships and with its limits on the process's clock. What is simulated is what they
// call: the connection to the log, the CRM, Telegram, the people, the clocks, and
// the processes with their deaths. Workers, deliveries and operators are coroutines
// (iter.Pull) that stand still at every call of a port, and where the connector
// waits for its turn. A plan says who goes on, what happens to the call, and when
// time passes.
//
// A Plan is data. The same plan gives the same log, byte for byte. Every step is
// possible in every situation, so each part of a plan is a plan, and Minimize can
// leave out whatever a violation does not need.
//
//	Draw      a plan from a source of numbers
//	Play      carries it out, heals the world, and judges
//	Minimize  the shortest plan with the same violation
//	Story     what happened, in words
//	Explore   every execution with at most so many troubles
//
// The judge knows what was truly sent, what the CRM truly has, and every event as
// it is recorded. Safety is judged after every call, under all faults; liveness
// when the faults have ended and nothing is due any more. The properties are named
// in property.go.
package sim
