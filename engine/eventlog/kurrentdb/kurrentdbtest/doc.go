/*
Package kurrentdbtest is a test double of KurrentDB (EventStoreDB). It speaks the
gRPC protocol over a socket and decides as the real server does, where a client
could tell the difference. It is no database and is not offered as one: its log
is in memory, the data file is not fsynced, and anybody on the machine can use it.

	s := kurrentdbtest.Start(t, kurrentdbtest.Options{})
	s.Inject(kurrentdbtest.Fault{Point: kurrentdbtest.AppendLost, Stream: "order-"})
	… connect to s.ConnectionString(), append, look at s.Events() …

The command in cmd/kurrentdbtest serves it to other processes.

# What was taken from where

Paths are below src/EventStore.Core of github.com/EventStore/EventStore at commit
3f1acb7; src/KurrentDB.Core of github.com/kurrent-io/KurrentDB at 44996ed
decides alike. Ids alone are compared, never content.

Append: Services/Storage/ReaderIndex/IndexWriter.cs, CheckCommit. With the stream
at revision c:

	expected      ids                                   answer
	no stream     c = -1                                written
	              those at 0, 1, …                      success, nothing written
	              those at 0, 1, …, then others         wrong expected version (CorruptedIdempotency)
	              others                                wrong expected version; of a soft-deleted stream: written at c+1
	exactly r     r < c, those at r+1, r+2, …           success, nothing written
	              r < c, anything else                  wrong expected version
	              r = c, whatever they are, old ones too  written (again)
	              r > c                                 wrong expected version
	any, stream   all in the cache, with this stream    success, nothing written
	exists        the first is not                      written (again)
	              the first is, a later one is not      wrong expected version
	              stream exists: no event, no metadata  wrong expected version
	              stream exists: soft-deleted           stream deleted
	whatever      behind a tombstone                    stream deleted

The cache has 8 MiB, keeps the first place of an id, forgets the oldest, and is
empty after a start (ReaderIndex/BoundedCache.cs, Settings/ESConsts.cs). What is
there but not indexed yet makes IdempotentNotReady: the writer drops it and the
call is Aborted after 2 s (Services/Storage/StorageWriterService.cs
ActOnCommitCheckFailure, Services/RequestManager/Managers/RequestManagerBase.cs).
Against anything else the writer counts what is not indexed yet, so an append can
conflict with an event that no reader sees. A repeat's answer has no position
when metadata hides the event (IndexReader.cs ReadEvent). $maxCount and $tb hide
events from readers of the stream at once, but from CheckCommit and $all only
after a scavenge.

  - Exactly 2^64-1 is no stream, other revisions of 2^63 and above make the
    handler fail: Services/Transport/Common/StreamRevision.cs.
  - The size of an append counts data, metadata and two bytes for each UTF-16
    unit of the type: Data/Event.cs SizeOnDisk, Transport/Grpc/Streams.Append.cs.
  - Rights, sizes and missing metadata are answered while the events come in, so
    a client may instead fail to send them, with EOF. All else waits for the last.
  - An append of no events succeeds and writes nothing that anybody sees.
  - Statuses, texts and trailers: Transport/Grpc/RpcExceptions.cs, Constants.cs.
    Whatever else the server throws is Unknown, as ASP.NET makes it.
  - Soft delete writes {"$tb": 2^63-1} to the metastream $$<stream>; the next
    append or metadata replaces it by the revision to read from. A tombstone is an
    event $streamDeleted of revision 2^63-1: StorageWriterService.cs.
  - A metastream shows only its newest event: IndexReader.cs, metastreamMetadata.
  - Positions are byte offsets. An event commits itself: commit equals prepare. A
    start of the node takes bytes that are no event.

Read: Transport/Grpc/Streams.Read.cs, Transport/Enumerators/Enumerator.*.cs,
ReaderIndex/IndexReader.cs, ReaderIndex/AllReader.cs.

  - Pages of 32. Nothing is filtered out of $all for a reader but what
    EventFilter.DefaultAllFilter hides, so system events are in it.
  - Forwards $all starts with the event at the position, backwards with the one
    before it. In the middle of a record it is an invalid position: Unknown for a
    read, InvalidArgument for a subscription. Behind the end it reads nothing.
  - Messages on a stream's first and last position come with compatibility 1 only.
  - created is in ticks of 100 ns since the Unix epoch, cut off, and always sent.

Subscriptions: Enumerator.StreamSubscription.cs, AllSubscription.cs,
AllSubscriptionFiltered.cs, Services/SubscriptionsService.cs.

  - They start behind the position. From one at or behind the end they are live at
    once, and silent about events up to it, even if the log is shorter now.
  - Filtered: a checkpoint after every multiplier × window records looked at, and
    where catching up ends. That one can be (c, 0) with c behind the newest event.
  - CaughtUp each time it goes live. FellBehind is in the protocol, but
    TryConvertReadResponse does not send it: see Options.FellBehind.
  - A live subscription for which more than 32 messages wait drops the oldest and
    catches up again. The real one has besides a buffer of 32 towards the socket.

Authorization: Authorization/LegacyStreamPermissionAssertion.cs; anonymous access
is off, as it is by default since 24.2.

The system's own events here are $statsCollected alone, one at each start and one
every StatsEvery appends.

# What is missing

Links are not resolved, BatchAppend and persistent subscriptions are not served
(the Go client never batches), there is one node in gossip, regular expressions
are Go's, $acl knows $r and $w with the names of users, $all and $admins.
*/
package kurrentdbtest
