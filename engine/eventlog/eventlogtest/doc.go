// Package eventlogtest is the conformance suite of the log port. An adapter
// passes its Backend to Run; each case is named after the guarantee, numbered
// in package eventlog, that it checks. G00 stands for the limits of the port,
// which are refused with eventlog.ErrInvalid.
//
// After each case the whole log is read and checked once more, and the lines of
// that check name their guarantees too.
//
// A case that waits for something is bounded by Backend.Patience and nothing
// sleeps, so a slow machine does not turn the suite red.
package eventlogtest
