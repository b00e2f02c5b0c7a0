// Package eventlog is the port to the log: named streams of events with
// optimistic concurrency, and one total order over all of them.
//
// Every adapter gives the numbered guarantees below, and the conformance suite
// in eventlogtest names the number of the guarantee that each of its cases
// checks.
//
//	G0  Arguments that break a limit are ErrInvalid and record nothing; so does
//	    reading a stream whose name breaks one.
//	G1  An append is atomic: all of its events are recorded, next to each
//	    other, or none is.
//	G2  An append that returned nil is durable: it survives the death of the
//	    process and of the machine.
//	G3  Revisions of a stream are 0, 1, 2, … without a gap, in append order.
//	G4  The expected revision is checked atomically with the write. A mismatch
//	    is a *ConflictError that carries the current revision and adds nothing.
//	G5  Repeating an append with the same event ids, expected revision and order
//	    succeeds, adds nothing and returns the revisions of the first one. Ids
//	    alone are compared. An overlap in part is a conflict. With Any this holds
//	    only while those events are the newest of the stream.
//	G6  An outcome that the adapter cannot know is an *UnknownError, never a
//	    conflict and never ErrUnavailable. ErrUnavailable means: certainly not
//	    recorded; so it is for a context that had ended before the append began.
//	G7  Every field of a Proposed event round-trips: time to the nanosecond (in
//	    UTC), data byte for byte up to MaxData, nil data as empty.
//	G8  ReadStream and ReadAll yield events in order, without gap or repetition,
//	    and see every append that returned before they were called. A stream
//	    that does not exist yields nothing.
//	G9  An error while reading is yielded as the last pair; the end of a loop
//	    without one is the end of the stream. A context that has ended is one.
//	G10 Positions grow strictly along ReadAll, and no event ever appears behind
//	    a position that was already yielded.
//	G11 Subscribe hands events to the handler one at a time, in order, without a
//	    gap, first the recorded ones and then each new one; it returns the
//	    handler's error, the context's, or ErrUnavailable when the log cannot be
//	    read: then call it again. A position behind the tail waits for
//	    events behind it: compare it first (Checkpoint.BelongsTo).
//	G12 Several processes may append to one log at the same time.
package eventlog
