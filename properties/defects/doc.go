// Package defects holds mistakes that an engine like ours has made somewhere, each
// as a small text file, and proves that the suite would catch every one of them.
//
// A file names the mistake, what it does and whom it hurts, the property that has
// to catch it, and the lines of our code that would make it:
//
//	name: LeaseIgnored
//	wrong: A claim is taken over while its lease runs: two processes send for one job.
//	property: only-under-claim
//
//	--- engine/advance.go
//	<<<<
//	the old lines, which are there exactly once
//	====
//	the new ones
//	>>>>
//
// The property is one of properties/sim, or several with a | between them where one
// mistake shows in several ways, or, beyond the reach of the simulation, a test:
// "test <package> <Test>". Behind the file's name stands how often the old lines
// occur when that is not once ("2 times").
//
// Our code stays as it is. Copies with the edits are built in its place by
// go build -overlay, the descriptions that are embedded in it as well; package hunt
// is the program that is built.
package defects
