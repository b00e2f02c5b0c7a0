// Package reply tells people what became of what they wrote: one message at most
// about a job, whatever dies or gets lost.
//
// A replier follows the log for one bot. At an outcome for which there is a text it
// appends ReplyClaimed to the reply's own stream, with NoStream: whoever wins may send,
// and nobody else ever may. Then the request leaves, and what is known of it is
// recorded. What holds:
//
//	A1  Of all repliers on a log, one at most sends about a job, and makes no second
//	    request unless the first was proven without effect.
//	A2  An outcome is told only while it is younger than Within, and is how the job
//	    stands. So a replier that was away, or lost its checkpoint, does not write to
//	    people about last year.
//	A3  A reply takes no part in the job: nothing of it is on the job's stream, and
//	    acceptance and leads do not wait for it.
//
// The price of A1 is that a replier which dies between claim and answer leaves a reply
// that is never sent again, and perhaps never was. The first outcome that has a text
// is told; a job that waits for a person and is done a day later says nothing more.
package reply
