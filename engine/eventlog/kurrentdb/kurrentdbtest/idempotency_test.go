package kurrentdbtest

import (
	"errors"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"
)

// outcome of an append: what it answered and how long the stream was then.
type outcome struct {
	revision int64 // -1: it failed
	code     esdb.ErrorCode
	length   int
}

const conflict = esdb.ErrorCodeWrongExpectedVersion

func lengthOf(s *Server, stream string) int {
	n := 0
	for _, e := range s.Events() {
		if e.Stream == stream {
			n++
		}
	}
	return n
}

func outcomeOf(s *Server, stream string, w *esdb.WriteResult, err error) outcome {
	o := outcome{revision: -1, length: lengthOf(s, stream)}
	var failed *esdb.Error
	if errors.As(err, &failed) {
		o.code = failed.Code()
	} else if w != nil {
		o.revision = int64(w.NextExpectedVersion)
	}
	return o
}

// TestAppendAgain repeats appends to a stream of four events a, b, c, d.
func TestAppendAgain(t *testing.T) {
	old := ids(4)
	x := uuid.New()
	pick := func(list ...int) []uuid.UUID {
		var picked []uuid.UUID
		for _, i := range list {
			if i < 0 {
				picked = append(picked, x)
			} else {
				picked = append(picked, old[i])
			}
		}
		return picked
	}
	const none = -1
	for _, c := range []struct {
		name     string
		expected esdb.ExpectedRevision
		ids      []uuid.UUID
		want     outcome
	}{
		{"no stream, the same", esdb.NoStream{}, pick(0, 1, 2, 3), outcome{3, 0, 4}},
		{"no stream, a prefix", esdb.NoStream{}, pick(0, 1), outcome{1, 0, 4}},
		{"no stream, more than there is", esdb.NoStream{}, pick(0, 1, 2, 3, -1), outcome{none, conflict, 4}},
		{"no stream, overlapping", esdb.NoStream{}, pick(0, -1), outcome{none, conflict, 4}},
		{"no stream, another order", esdb.NoStream{}, pick(1, 0), outcome{none, conflict, 4}},
		{"no stream, not from its start", esdb.NoStream{}, pick(1, 2), outcome{none, conflict, 4}},
		{"no stream, others", esdb.NoStream{}, pick(-1), outcome{none, conflict, 4}},
		{"behind the tail, the same", esdb.Revision(1), pick(2, 3), outcome{3, 0, 4}},
		{"behind the tail, a part", esdb.Revision(0), pick(1), outcome{1, 0, 4}},
		{"behind the tail, overlapping", esdb.Revision(1), pick(2, -1), outcome{none, conflict, 4}},
		{"behind the tail, others", esdb.Revision(1), pick(-1), outcome{none, conflict, 4}},
		{"at the tail, old ids", esdb.Revision(3), pick(2, 3), outcome{5, 0, 6}},
		{"at the tail, new", esdb.Revision(3), pick(-1), outcome{4, 0, 5}},
		{"beyond the tail", esdb.Revision(4), pick(-1), outcome{none, conflict, 4}},
		{"any, the same", esdb.Any{}, pick(0, 1, 2, 3), outcome{3, 0, 4}},
		{"any, not the newest", esdb.Any{}, pick(1), outcome{1, 0, 4}},
		{"any, another order", esdb.Any{}, pick(3, 0), outcome{0, 0, 4}},
		{"any, old then new", esdb.Any{}, pick(3, -1), outcome{none, conflict, 4}},
		{"any, new then old", esdb.Any{}, pick(-1, 3), outcome{5, 0, 6}},
		{"stream exists, the same", esdb.StreamExists{}, pick(3), outcome{3, 0, 4}},
		{"stream exists, new", esdb.StreamExists{}, pick(-1), outcome{4, 0, 5}},
		{"the largest revision is no stream", esdb.Revision(^uint64(0)), pick(0, 1), outcome{1, 0, 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := Start(t, Options{StatsEvery: -1})
			client := connect(t, s)
			mustAppend(t, client, "order-1", esdb.NoStream{}, old...)
			w, err := append1(t, client, "order-1", c.expected, c.ids...)
			if got := outcomeOf(s, "order-1", w, err); got != c.want {
				t.Errorf("answered %+v (%v), want %+v", got, err, c.want)
			}
		})
	}
}

func TestARepeatAnswersThePositionOfTheFirst(t *testing.T) {
	s := Start(t, Options{})
	c := connect(t, s)
	list := ids(2)
	first := mustAppend(t, c, "order-1", esdb.NoStream{}, list...)
	mustAppend(t, c, "order-1", esdb.Revision(1), uuid.New())
	again := mustAppend(t, c, "order-1", esdb.NoStream{}, list...)
	if *again != *first {
		t.Errorf("the repeat answers %+v, the first %+v", again, first)
	}
}

func TestTheCacheOfIDsIsBounded(t *testing.T) {
	s := Start(t, Options{IDCacheBytes: 3 * place{stream: "order-1"}.cost()})
	c := connect(t, s)
	list := ids(1)
	mustAppend(t, c, "order-1", esdb.Any{}, list...)
	mustAppend(t, c, "order-1", esdb.Any{}, ids(2)...)
	if w := mustAppend(t, c, "order-1", esdb.Any{}, list...); w.NextExpectedVersion != 0 {
		t.Fatalf("known still, but written again at %d", w.NextExpectedVersion)
	}
	mustAppend(t, c, "order-1", esdb.Any{}, ids(3)...)
	if w := mustAppend(t, c, "order-1", esdb.Any{}, list...); w.NextExpectedVersion != 6 {
		t.Errorf("forgotten, but answered %d instead of a second event at 6", w.NextExpectedVersion)
	}
	if w := mustAppend(t, c, "order-1", esdb.NoStream{}, list...); w.NextExpectedVersion != 0 {
		t.Errorf("no stream needs no cache, but answered %d", w.NextExpectedVersion)
	}
}

func TestTheCacheOfIDsEndsWithARestart(t *testing.T) {
	s := Start(t, Options{})
	c := connect(t, s)
	list := ids(1)
	mustAppend(t, c, "order-1", esdb.Any{}, list...)
	if err := s.Restart(true); err != nil {
		t.Fatal(err)
	}
	c = connect(t, s)
	if w := mustAppend(t, c, "order-1", esdb.Any{}, list...); w.NextExpectedVersion != 1 {
		t.Errorf("answered %d, want a second event at 1", w.NextExpectedVersion)
	}
	if w := mustAppend(t, c, "order-1", esdb.NoStream{}, list...); w.NextExpectedVersion != 0 {
		t.Errorf("no stream answered %d, want 0", w.NextExpectedVersion)
	}
}

// TestAnIDKeepsItsFirstPlace: the same id in a second stream is never known
// there, because the cache knows its place in the first.
func TestAnIDKeepsItsFirstPlace(t *testing.T) {
	s := Start(t, Options{})
	c := connect(t, s)
	list := ids(1)
	mustAppend(t, c, "order-1", esdb.Any{}, list...)
	for want := range uint64(2) {
		if w := mustAppend(t, c, "order-2", esdb.Any{}, list...); w.NextExpectedVersion != want {
			t.Errorf("answered %d, want %d", w.NextExpectedVersion, want)
		}
	}
}

func TestWhatIsNotIndexedIsNotReady(t *testing.T) {
	s := Start(t, Options{CommitTimeout: 50 * time.Millisecond})
	c := connect(t, s)
	list := ids(1)
	held := s.Inject(Fault{Point: AppendNotIndexed, Delay: time.Hour})
	for _, name := range []string{"the first", "the repeat"} {
		_, err := append1(t, c, "order-1", esdb.NoStream{}, list...)
		if o := outcomeOf(s, "order-1", nil, err); o.code != esdb.ErrorAborted {
			t.Errorf("%s answered %v, want Aborted", name, err)
		}
	}
	if held.Fired() != 1 {
		t.Fatalf("the fault fired %d times", held.Fired())
	}
	_, err := append1(t, c, "order-1", esdb.NoStream{}, ids(1)...)
	if o := outcomeOf(s, "order-1", nil, err); o.code != conflict {
		t.Errorf("another append answered %v, want a conflict", err)
	}
	rs, err := c.ReadStream(soon(t), "order-1", esdb.ReadStreamOptions{From: esdb.Start{}}, 10)
	if _, err = drain(t, rs, err); outcomeOf(s, "", nil, err).code != esdb.ErrorCodeResourceNotFound {
		t.Errorf("a reader sees %v, want no stream", err)
	}
	if err := s.Restart(true); err != nil {
		t.Fatal(err)
	}
	if n := lengthOf(s, "order-1"); n != 1 {
		t.Errorf("after a restart there are %d events, want 1", n)
	}
}

func TestWhatIsNotIndexedCanBeLost(t *testing.T) {
	s := Start(t, Options{CommitTimeout: 20 * time.Millisecond})
	c := connect(t, s)
	s.Inject(Fault{Point: AppendNotIndexed, Delay: time.Hour})
	if _, err := append1(t, c, "order-1", esdb.NoStream{}, ids(2)...); err == nil {
		t.Fatal("answered what is not indexed")
	}
	if n, err := s.LoseUnindexed(); n != 2 || err != nil {
		t.Fatalf("lost %d events, %v", n, err)
	}
	if err := s.Restart(true); err != nil {
		t.Fatal(err)
	}
	w := mustAppend(t, connect(t, s), "order-1", esdb.NoStream{}, ids(1)...)
	if w.NextExpectedVersion != 0 || lengthOf(s, "order-1") != 1 {
		t.Errorf("answered %d with %d events", w.NextExpectedVersion, lengthOf(s, "order-1"))
	}
}

func TestAnAppendThatIsLostWhileItWaitsFails(t *testing.T) {
	s := Start(t, Options{CommitTimeout: time.Hour})
	c := connect(t, s)
	s.Inject(Fault{Point: AppendNotIndexed, Delay: time.Hour})
	answer := make(chan error, 1)
	go func() {
		_, err := append1(t, c, "order-1", esdb.NoStream{}, ids(1)...)
		answer <- err
	}()
	until(t, "the event to be written and lost", func() bool {
		n, err := s.LoseUnindexed()
		return n == 1 && err == nil
	})
	if err := <-answer; codeOf(err) != esdb.ErrorUnavailable {
		t.Errorf("answered %v", err)
	}
}

func TestASlowIndexDelaysTheAnswer(t *testing.T) {
	s := Start(t, Options{})
	c := connect(t, s)
	s.Inject(Fault{Point: AppendNotIndexed, Delay: 30 * time.Millisecond})
	start := time.Now()
	mustAppend(t, c, "order-1", esdb.NoStream{}, ids(1)...)
	if waited := time.Since(start); waited < 30*time.Millisecond {
		t.Errorf("answered after %v, before it was indexed", waited)
	}
}
