// Package logcopy copies a log into another one, over any backends, and keeps
// the total order: the target is, event by event, a beginning of the source.
//
// There is no checkpoint that could be wrong. A copy first compares what the
// target has with the source, from the first event on, and appends the rest
// behind it with the ids of the source; so a copy that was broken off anywhere
// is resumed by doing it again, and one that is complete adds nothing. What it
// appended is read back and compared too, before the copy says that it is done.
//
// The source may be in use. The target may not, except by other copies of the
// same source: whatever else is in it ends the copy with a *DifferenceError.
//
// MIGRATION.md in this folder says how a running system moves to another log.
package logcopy
