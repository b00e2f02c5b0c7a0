package kurrentdbtest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// within is a short time after which a client gives up on what hangs.
const within = 100 * time.Millisecond

// patienceFor is a deadline: a short one only for what hangs.
func patienceFor(code esdb.ErrorCode) time.Duration {
	if code == esdb.ErrorCodeDeadlineExceeded {
		return 5 * within
	}
	return 20 * time.Second
}

func TestFaultsOfAnAppend(t *testing.T) {
	for _, c := range []struct {
		fault    Fault
		code     esdb.ErrorCode
		recorded int
	}{
		{Fault{Point: AppendLost}, esdb.ErrorUnavailable, 1},
		{Fault{Point: AppendCut}, esdb.ErrorUnavailable, 0},
		{Fault{Point: AppendNotIndexed, Delay: time.Hour}, esdb.ErrorAborted, 0}, // shown when the server stops
		{Fault{Point: AppendNotIndexed, Delay: time.Millisecond}, -1, 1},
		{Fault{Point: AppendTimeout}, esdb.ErrorAborted, 0},
		{Fault{Point: AppendNotReady}, esdb.ErrorUnavailable, 0},
		{Fault{Point: AppendNotLeader}, esdb.ErrorCodeNotLeader, 0},
		{Fault{Point: AppendDenied}, esdb.ErrorCodeAccessDenied, 0},
		{Fault{Point: AppendHang}, esdb.ErrorCodeDeadlineExceeded, 0},
		{Fault{Point: AppendLate}, esdb.ErrorCodeDeadlineExceeded, 1},
		{Fault{Point: AppendLost, Stream: "other-"}, -1, 1},
		{Fault{Point: ReadUnavailable}, -1, 1},
	} {
		t.Run(string(c.fault.Point)+c.fault.Stream, func(t *testing.T) {
			s := Start(t, Options{CommitTimeout: 50 * time.Millisecond})
			client := connect(t, s)
			if _, err := readAll(t, client, esdb.ReadAllOptions{From: esdb.Start{}}, 1); err != nil { // connects
				t.Fatal(err)
			}
			s.Inject(c.fault)
			patience := patienceFor(c.code)
			_, err := client.AppendToStream(soon(t), "order-1",
				esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}, Deadline: &patience}, events(ids(1)...)...)
			unsent := c.fault.Point == AppendDenied && codeOf(err) == esdb.ErrorCodeUnknown // EOF in sending
			if codeOf(err) != c.code && !unsent {
				t.Errorf("answered %v, want code %d", err, c.code)
			}
			if c.fault.Point == AppendLate {
				until(t, "the late commit", func() bool { return lengthOf(s, "order-1") == 1 })
			}
			if n := lengthOf(s, "order-1"); n != c.recorded {
				t.Errorf("%d events recorded, want %d", n, c.recorded)
			}
		})
	}
}

func TestNotLeaderNamesTheLeader(t *testing.T) {
	leader := Start(t, Options{})
	follower := Start(t, Options{})
	follower.Inject(Fault{Point: AppendNotLeader, Leader: leader.Address()})
	c := connect(t, follower)
	if _, err := append1(t, c, "order-1", esdb.NoStream{}, ids(1)...); codeOf(err) != esdb.ErrorCodeNotLeader {
		t.Fatalf("answered %v", err)
	}
	mustAppend(t, c, "order-1", esdb.NoStream{}, ids(1)...) // the client went to the leader
	if lengthOf(leader, "order-1") != 1 || lengthOf(follower, "order-1") != 0 {
		t.Error("the event is not with the leader")
	}
}

func TestFaultsOfARead(t *testing.T) {
	for _, c := range []struct {
		fault Fault
		code  esdb.ErrorCode
		seen  int
		exact bool // else at most
	}{
		{Fault{Point: ReadCut, After: 40}, esdb.ErrorUnavailable, 40, false},
		{Fault{Point: ReadUnavailable, After: 40}, esdb.ErrorUnavailable, 40, true},
		{Fault{Point: ReadUnavailable}, esdb.ErrorUnavailable, 0, true},
		{Fault{Point: ReadUnavailable, After: 1000}, esdb.ErrorUnavailable, 100, true},
		{Fault{Point: ReadUnavailable, After: 3, Status: codes.Aborted}, esdb.ErrorAborted, 3, true},
		{Fault{Point: ReadHang, After: 40}, esdb.ErrorCodeDeadlineExceeded, 40, true},
		{Fault{Point: ReadSlow, After: 95, Delay: time.Millisecond}, -1, 100, true},
		{Fault{Point: ReadSlow, After: 40, Delay: time.Hour}, esdb.ErrorCodeDeadlineExceeded, 40, true},
		{Fault{Point: ReadStale, Behind: 30}, -1, 70, true},
	} {
		t.Run(string(c.fault.Point), func(t *testing.T) {
			s := Start(t, Options{StatsEvery: -1})
			client := connect(t, s)
			mustAppend(t, client, "order-1", esdb.NoStream{}, ids(100)...)
			c.fault.Stream = "order-"
			injected := s.Inject(c.fault)
			patience := patienceFor(c.code)
			got, err := readStream(t, client, "order-1", esdb.ReadStreamOptions{From: esdb.Start{}, Deadline: &patience}, 1000)
			if codeOf(err) != c.code || c.exact && len(got) != c.seen || len(got) > c.seen {
				t.Errorf("read %d events, %v, want %d, code %d", len(got), err, c.seen, c.code)
			}
			if injected.Fired() != 1 {
				t.Errorf("fired %d times", injected.Fired())
			}
			client = connect(t, s)
			if got, err = readStream(t, client, "order-1", esdb.ReadStreamOptions{From: esdb.Start{}}, 1000); err != nil || len(got) != 100 {
				t.Errorf("the next read has %d events, %v", len(got), err)
			}
		})
	}
}

func TestAStaleReadOfAll(t *testing.T) {
	s := Start(t, Options{StatsEvery: -1})
	c := connect(t, s)
	mustAppend(t, c, "order-1", esdb.NoStream{}, ids(10)...)
	s.Inject(Fault{Point: ReadStale, Stream: "$all", Behind: 4, Times: 2})
	got, err := readAll(t, c, esdb.ReadAllOptions{From: esdb.End{}, Direction: esdb.Backwards}, 1)
	if err != nil || got[0].EventNumber != 5 {
		t.Errorf("the newest is %v, %v, want 5", revisions(got), err)
	}
	if got, err = readAll(t, c, esdb.ReadAllOptions{From: esdb.Start{}}, 99); err != nil || !slices.Equal(revisions(got), span(0, 5)) {
		t.Errorf("read %v, %v", revisions(got), err)
	}
	s.Inject(Fault{Point: ReadStale, Behind: 100})
	if got, err = readStream(t, c, "order-1", esdb.ReadStreamOptions{From: esdb.Start{}}, 99); codeOf(err) != esdb.ErrorCodeResourceNotFound {
		t.Errorf("a stream that has not come yet answers %v, %v", revisions(got), err)
	}
}

func TestFaultsOfASubscription(t *testing.T) {
	start := func(t *testing.T, f Fault) (*esdb.Client, *esdb.Subscription, error) {
		s := Start(t, Options{StatsEvery: -1})
		c := connect(t, s)
		mustAppend(t, c, "order-1", esdb.NoStream{}, ids(10)...)
		s.Inject(f)
		sub, err := c.SubscribeToAll(soon(t), esdb.SubscribeToAllOptions{From: esdb.Start{}, Filter: orders()})
		if err == nil {
			t.Cleanup(func() { _ = sub.Close() })
		}
		return c, sub, err
	}
	t.Run("unavailable", func(t *testing.T) {
		if _, _, err := start(t, Fault{Point: SubscribeUnavailable}); err == nil {
			t.Error("it was confirmed")
		}
	})
	t.Run("dropped", func(t *testing.T) {
		_, sub, _ := start(t, Fault{Point: SubscribeDrop, After: 4, Status: codes.Aborted})
		if h := hear(t, sub, "dropped", 1); len(h.events) != 4 || status.Code(h.err) != codes.Aborted {
			t.Errorf("it told %v, %v", h.list, h.err)
		}
	})
	t.Run("cut", func(t *testing.T) {
		_, sub, _ := start(t, Fault{Point: SubscribeCut, After: 4})
		if h := hear(t, sub, "dropped", 1); len(h.events) > 4 || status.Code(h.err) != codes.Unavailable {
			t.Errorf("it told %v, %v", h.list, h.err)
		}
	})
	t.Run("bogus checkpoint", func(t *testing.T) {
		_, sub, _ := start(t, Fault{Point: SubscribeCheckpoint, After: 4})
		h := hear(t, sub, "live", 1)
		bogus := esdb.Position{Commit: ^uint64(0), Prepare: ^uint64(0)}
		if len(h.events) != 10 || h.list[4] != "checkpoint" || h.checkpoints[0] != bogus {
			t.Errorf("it told %v, %v", h.list, h.checkpoints)
		}
	})
	t.Run("slow", func(t *testing.T) {
		_, sub, _ := start(t, Fault{Point: SubscribeSlow, After: 8, Delay: time.Millisecond})
		hear(t, sub, "event", 10)
	})
	t.Run("stalled", func(t *testing.T) {
		c, sub, _ := start(t, Fault{Point: SubscribeStall, After: 4})
		hear(t, sub, "event", 4)
		next := make(chan *esdb.SubscriptionEvent, 1)
		go func() { next <- sub.Recv() }()
		mustAppend(t, c, "order-1", esdb.Any{}, ids(1)...) // the connection lives
		select {
		case m := <-next:
			t.Errorf("it told %+v", m)
		case <-time.After(within):
		}
		_ = sub.Close()
		<-next
	})
	t.Run("unconfirmed", func(t *testing.T) {
		s := Start(t, Options{})
		c := connect(t, s)
		s.Inject(Fault{Point: SubscribeUnconfirmed})
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		if _, err := c.SubscribeToAll(ctx, esdb.SubscribeToAllOptions{From: esdb.Start{}}); codeOf(err) != esdb.ErrorCodeDeadlineExceeded {
			t.Errorf("it ended with %v", err)
		}
	})
}

func TestFaultsCountAndEnd(t *testing.T) {
	s := Start(t, Options{})
	c := connect(t, s)
	failures := func(n int) int {
		failed := 0
		for range n {
			if _, err := append1(t, c, "order-1", esdb.Any{}, ids(1)...); err != nil {
				failed++
			}
		}
		return failed
	}
	twice := s.Inject(Fault{Point: AppendDenied, Times: 2})
	if n := failures(5); n != 2 || twice.Fired() != 2 {
		t.Errorf("2 times: %d failed, %d fired", n, twice.Fired())
	}
	some := s.Inject(Fault{Point: AppendDenied, Probability: 0.5})
	if n := failures(100); n < 30 || n > 70 || n != some.Fired() {
		t.Errorf("half of the time: %d failed, %d fired", n, some.Fired())
	}
	some.Remove()
	if n := failures(20); n != 0 {
		t.Errorf("removed: %d failed", n)
	}
	always := s.Inject(Fault{Point: AppendDenied, Probability: 1})
	if n := failures(10); n != 10 || always.Fired() != 10 {
		t.Errorf("always: %d failed", n)
	}
	s.ClearFaults()
	if n := failures(5); n != 0 {
		t.Errorf("cleared: %d failed", n)
	}
}

func TestInjectRefusesAPointThatDoesNotExist(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("it did not panic")
		}
	}()
	Start(t, Options{}).Inject(Fault{Point: "append"})
}

func TestDropConnections(t *testing.T) {
	s := Start(t, Options{})
	c := connect(t, s)
	sub := subscribeAll(t, c, esdb.SubscribeToAllOptions{From: esdb.Start{}, Filter: orders()})
	hear(t, sub, "live", 1)
	s.DropConnections()
	if h := hear(t, sub, "dropped", 1); status.Code(h.err) != codes.Unavailable {
		t.Errorf("dropped with %v", h.err)
	}
	mustAppend(t, connect(t, s), "order-1", esdb.NoStream{}, ids(1)...)
}

func TestParseFaults(t *testing.T) {
	got, err := ParseFaults("appendlost=0.01, appendnotindexed=0.5:300ms")
	want := []Fault{{Point: AppendLost, Probability: 0.01}, {Point: AppendNotIndexed, Probability: 0.5, Delay: 300 * time.Millisecond}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("parsed %+v, %v", got, err)
	}
	if got, err = ParseFaults(""); err != nil || got != nil {
		t.Errorf("parsed %+v, %v", got, err)
	}
	for _, bad := range []string{"append=0.1", "appendlost", "appendlost=0", "appendlost=2", "appendlost=x", "appendlost=0.1:soon", "appendlost=0.1:-1s"} {
		if _, err := ParseFaults(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
