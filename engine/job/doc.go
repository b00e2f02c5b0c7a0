// Package job is the domain: what may happen to one update between its
// acceptance and its lead, as pure functions.
//
// Read it in this order: machine.go has the phases and the transition table,
// event.go the events, state.go how they fold into a State, and the decide
// files which events follow from a State and what was just learnt. Nothing here
// reads a clock, draws a random number, does I/O or fails on recorded history
// that decoded: times, ids and jitter arrive as data.
package job
