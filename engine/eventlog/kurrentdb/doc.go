// Package kurrentdb is the log on KurrentDB (EventStoreDB), for more than one
// machine: any number of processes share it.
//
//	log, err := kurrentdb.Open(ctx, kurrentdb.Config{Connection: "esdb://user:password@node1:2113?tls=true"})
//
// It goes through the vendor's client, github.com/EventStore/EventStore-Client-Go
// v4.2.0, and its point is to hide what that client and the server do not do for
// us: a connection that dies for good, calls that hang, appends whose outcome the
// answer does not say, subscriptions that stop without a word. DESIGN.md numbers
// these hazards (H1, H2, …); the code names the number where the guard is.
//
// What a user notices of the backend's own limits:
//
//   - The server must accept an append of 8 MiB, since the port allows an event of
//     4 MiB: --max-append-size=8388608 (until version 24 the default is 1 MiB).
//     An append above Config.MaxAppendBytes is eventlog.ErrInvalid.
//   - The user of the connection needs to read $all.
//   - Streams of the log must never be deleted, truncated, or given a $maxAge or
//     $maxCount. What was cut off is found out and is a *DamagedError.
//   - Append with eventlog.Any takes two round trips, the others one.
package kurrentdb
