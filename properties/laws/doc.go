// Package laws holds what must be true of the pure parts for every input: the
// machine, the names of streams and keys, the fold of events, the decisions that
// follow from it, and the read models. It has tests alone, and they see only what
// the packages offer to everybody, so that each law is judged by code that shares
// nothing with what it judges. What a package's own tests show already is not
// shown again here.
//
//   - The machine is the table of the design, over every sequence of events up to
//     eight.
//   - The name of a stream can be read in one way, and so can a key of any kind.
//   - Two histories that fold to one state are treated alike ever after.
//   - A log has one meaning: its read models do not depend on how the streams are
//     interleaved in it, nor on where a feeder stopped and what was handed to it
//     twice.
//   - Logs of earlier releases fold as they did then. They lie in testdata/golden,
//     which is only ever added to: a file there is somebody's log.
//
// Each test counts what it really checked, so that none can pass by checking
// nothing.
package laws
