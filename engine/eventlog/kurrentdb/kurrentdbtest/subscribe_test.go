package kurrentdbtest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func subscribeAll(t *testing.T, c *esdb.Client, o esdb.SubscribeToAllOptions) *esdb.Subscription {
	t.Helper()
	sub, err := c.SubscribeToAll(soon(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sub.Close() })
	return sub
}

// orders is a filter on the streams that begin with "order-".
func orders() *esdb.SubscriptionFilter {
	return &esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Prefixes: []string{"order-"}}
}

// told writes down messages of a subscription: e<revision>@<stream>, checkpoint,
// live (caught up), behind, dropped. Events of the same stream in a row are one.
type told struct {
	list        []string
	checkpoints []esdb.Position
	events      []*esdb.RecordedEvent
	err         error
}

// hear takes messages until the last of them is what it waits for, n times.
func hear(t *testing.T, sub *esdb.Subscription, last string, n int) *told {
	t.Helper()
	h := &told{}
	for n > 0 {
		m := sub.Recv()
		what := ""
		switch {
		case m.EventAppeared != nil:
			what = "event"
			h.events = append(h.events, m.EventAppeared.Event)
		case m.CheckPointReached != nil:
			what = "checkpoint"
			h.checkpoints = append(h.checkpoints, *m.CheckPointReached)
		case m.CaughtUp != nil:
			what = "live"
		case m.FellBehind != nil:
			what = "behind"
		case m.SubscriptionDropped != nil:
			what = "dropped"
			h.err = m.SubscriptionDropped.Error
		}
		h.list = append(h.list, what)
		if what == last {
			n--
		} else if what == "dropped" {
			t.Fatalf("dropped after %v: %v", h.list, h.err)
		}
	}
	return h
}

func TestSubscribeToAllCatchesUpAndGoesLive(t *testing.T) {
	s := Start(t, Options{})
	c := connect(t, s)
	mustAppend(t, c, "order-1", esdb.NoStream{}, ids(70)...)
	mustAppend(t, c, "other-1", esdb.NoStream{}, ids(3)...)
	sub := subscribeAll(t, c, esdb.SubscribeToAllOptions{From: esdb.Start{}, Filter: orders(), MaxSearchWindow: 32, CheckpointInterval: 1})
	h := hear(t, sub, "live", 1)
	if !slices.Equal(revisions(h.events), span(0, 69)) {
		t.Errorf("caught up on %v", revisions(h.events))
	}
	if len(h.checkpoints) != 3 { // after 32 and 64 records and at the end
		t.Errorf("checkpoints %v in %v", h.checkpoints, h.list)
	}
	mustAppend(t, c, "order-2", esdb.NoStream{}, ids(2)...)
	h = hear(t, sub, "event", 2)
	if len(h.list) != 2 || h.events[0].StreamID != "order-2" {
		t.Errorf("live it told %v", h.list)
	}
}

func TestAnUnfilteredSubscriptionHasNoCheckpoints(t *testing.T) {
	s := Start(t, Options{})
	c := connect(t, s)
	mustAppend(t, c, "order-1", esdb.NoStream{}, ids(100)...)
	sub := subscribeAll(t, c, esdb.SubscribeToAllOptions{From: esdb.Start{}})
	h := hear(t, sub, "live", 1)
	if len(h.checkpoints) != 0 || len(h.events) != len(s.Events()) || h.events[0].EventType != "$statsCollected" {
		t.Errorf("it told %v", h.list)
	}
}

func TestLiveCheckpointsComeForFilteredEvents(t *testing.T) {
	s := Start(t, Options{StatsEvery: -1})
	c := connect(t, s)
	mustAppend(t, c, "order-1", esdb.NoStream{}, ids(3)...)
	sub := subscribeAll(t, c, esdb.SubscribeToAllOptions{From: esdb.End{}, Filter: orders(), MaxSearchWindow: 5, CheckpointInterval: 2})
	if h := hear(t, sub, "live", 1); len(h.list) != 1 {
		t.Errorf("from the end it told %v before it was live", h.list)
	}
	for range 25 {
		mustAppend(t, c, "other-1", esdb.Any{}, ids(1)...)
	}
	h := hear(t, sub, "checkpoint", 2)
	all := s.Events()
	for i, p := range h.checkpoints {
		if want := all[3+10*(i+1)-1].Position; p.Commit != want || p.Prepare != want || len(h.list) != 2 {
			t.Errorf("checkpoint %d is at %v, want %d; told %v", i, p, want, h.list)
		}
	}
}

// TestACheckpointComesOnce: the one due when live was sent while catching up.
func TestACheckpointComesOnce(t *testing.T) {
	s := Start(t, Options{StatsEvery: -1})
	c := connect(t, s)
	mustAppend(t, c, "order-1", esdb.NoStream{}, ids(6)...)
	s.Inject(Fault{Point: SubscribeSlow, Delay: within})
	sub := subscribeAll(t, c, esdb.SubscribeToAllOptions{From: esdb.Start{}, Filter: orders(), MaxSearchWindow: 5, CheckpointInterval: 1})
	hear(t, sub, "event", 1) // of a page of five
	mustAppend(t, c, "order-1", esdb.Any{}, ids(5)...)
	hear(t, sub, "live", 1)
	mustAppend(t, c, "order-1", esdb.Any{}, ids(1)...)
	if h := hear(t, sub, "event", 1); len(h.list) != 1 {
		t.Errorf("it told %v", h.list)
	}
}

func TestSubscriptionsStartBehindThePosition(t *testing.T) {
	s := Start(t, Options{StatsEvery: -1})
	c := connect(t, s)
	mustAppend(t, c, "order-1", esdb.NoStream{}, ids(50)...)
	first := hear(t, subscribeAll(t, c, esdb.SubscribeToAllOptions{From: esdb.Start{}, Filter: orders()}), "live", 1)
	h := hear(t, subscribeAll(t, c, esdb.SubscribeToAllOptions{From: first.events[9].Position, Filter: orders()}), "live", 1)
	if !slices.Equal(revisions(h.events), span(10, 49)) {
		t.Errorf("from an event's position it told %v", revisions(h.events))
	}
	sub := subscribeAll(t, c, esdb.SubscribeToAllOptions{From: first.checkpoints[len(first.checkpoints)-1], Filter: orders()})
	hear(t, sub, "live", 1)
	mustAppend(t, c, "order-1", esdb.Any{}, ids(1)...)
	if h = hear(t, sub, "event", 1); h.events[0].EventNumber != 50 {
		t.Errorf("from a checkpoint it told %v", revisions(h.events))
	}

	one, err := c.SubscribeToStream(soon(t), "order-1", esdb.SubscribeToStreamOptions{From: esdb.Revision(9)})
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	if h = hear(t, one, "live", 1); !slices.Equal(revisions(h.events), span(10, 50)) {
		t.Errorf("a stream from a revision told %v", revisions(h.events))
	}
}

// TestACheckpointBehindTheEndIsSilent: after the log was made anew, a subscriber
// with an old position hears nothing until the log has outgrown it.
func TestACheckpointBehindTheEndIsSilent(t *testing.T) {
	s := Start(t, Options{StatsEvery: -1})
	c := connect(t, s)
	mustAppend(t, c, "order-1", esdb.NoStream{}, ids(10)...)
	all := s.Events()
	old := all[len(all)-1].Position
	if err := s.Restart(false); err != nil {
		t.Fatal(err)
	}
	c = connect(t, s)
	sub := subscribeAll(t, c, esdb.SubscribeToAllOptions{From: esdb.Position{Commit: old, Prepare: old}, Filter: orders()})
	hear(t, sub, "live", 1)
	mustAppend(t, c, "order-1", esdb.NoStream{}, ids(30)...)
	h := hear(t, sub, "event", 1)
	if h.events[0].EventNumber == 0 || h.events[0].Position.Commit <= old {
		t.Errorf("it told event %d at %v, want the first behind %d", h.events[0].EventNumber, h.events[0].Position, old)
	}
}

func TestAnInvalidPositionEndsASubscription(t *testing.T) {
	s := Start(t, Options{})
	c := connect(t, s)
	mustAppend(t, c, "order-1", esdb.NoStream{}, ids(10)...)
	at := s.Events()[3].Position + 1
	h := hear(t, subscribeAll(t, c, esdb.SubscribeToAllOptions{From: esdb.Position{Commit: at, Prepare: at}}), "dropped", 1)
	if status.Code(h.err) != codes.InvalidArgument {
		t.Errorf("dropped with %v", h.err)
	}
}

func TestASlowSubscriberFallsBehindAndMissesNothing(t *testing.T) {
	for _, tells := range []bool{false, true} {
		t.Run(fmt.Sprint(tells), func(t *testing.T) {
			s := Start(t, Options{FellBehind: tells, StatsEvery: -1})
			c := connect(t, s)
			sub := subscribeAll(t, c, esdb.SubscribeToAllOptions{From: esdb.Start{}, Filter: orders()})
			hear(t, sub, "live", 1)
			mustAppend(t, c, "order-1", esdb.NoStream{}, ids(200)...) // more than wait for it at once
			h := hear(t, sub, "event", 200)
			if !slices.Equal(revisions(h.events), span(0, 199)) {
				t.Errorf("it told %v", revisions(h.events))
			}
			if slices.Contains(h.list, "behind") != tells {
				t.Errorf("it told %v", h.list)
			}
			hear(t, sub, "live", 1) // again
		})
	}
}

func TestSubscribeToStream(t *testing.T) {
	s := Start(t, Options{})
	c := connect(t, s)
	sub, err := c.SubscribeToStream(soon(t), "order-1", esdb.SubscribeToStreamOptions{From: esdb.Start{}})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	hear(t, sub, "live", 1)
	mustAppend(t, c, "order-2", esdb.NoStream{}, ids(3)...)
	mustAppend(t, c, "order-1", esdb.NoStream{}, ids(40)...)
	h := hear(t, sub, "event", 40)
	if !slices.Equal(revisions(h.events), span(0, 39)) {
		t.Errorf("it told %v", revisions(h.events))
	}
	if _, err := c.TombstoneStream(soon(t), "order-1", esdb.TombstoneStreamOptions{ExpectedRevision: esdb.Any{}}); err != nil {
		t.Fatal(err)
	}
	h = hear(t, sub, "dropped", 1)
	if status.Code(h.err) != codes.FailedPrecondition || h.events[len(h.events)-1].EventType != "$streamDeleted" {
		t.Errorf("a tombstone tells %v, %v", h.list, h.err)
	}
	if _, err := c.SubscribeToStream(soon(t), "order-1", esdb.SubscribeToStreamOptions{From: esdb.Start{}}); codeOf(err) != esdb.ErrorCodeStreamDeleted {
		t.Errorf("subscribing behind a tombstone answers %v", err)
	}
}

// TestASubscriptionDoesNotRaiseTheDead: what a soft delete hid stays hidden from
// one that was caught up.
func TestASubscriptionDoesNotRaiseTheDead(t *testing.T) {
	s := Start(t, Options{})
	c := connect(t, s)
	mustAppend(t, c, "order-1", esdb.NoStream{}, ids(3)...)
	remove(t, c, "order-1")
	sub, err := c.SubscribeToStream(soon(t), "order-1", esdb.SubscribeToStreamOptions{From: esdb.Start{}})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	hear(t, sub, "live", 1)
	mustAppend(t, c, "order-1", esdb.Any{}, ids(1)...)
	if h := hear(t, sub, "event", 1); h.events[0].EventNumber != 3 {
		t.Errorf("it told event %d, want 3", h.events[0].EventNumber)
	}
}

func TestSubscriptionsEndWithTheServer(t *testing.T) {
	s := Start(t, Options{})
	c := connect(t, s)
	sub := subscribeAll(t, c, esdb.SubscribeToAllOptions{From: esdb.Start{}, Filter: orders()})
	hear(t, sub, "live", 1)
	s.Stop()
	if h := hear(t, sub, "dropped", 1); status.Code(h.err) != codes.Unavailable {
		t.Errorf("dropped with %v", h.err)
	}
}

func TestASubscriptionNeedsAnInterval(t *testing.T) {
	s := Start(t, Options{})
	o := rawStream("", 0, 0, 0)
	o.StreamOption = &streams.ReadReq_Options_All{All: &streams.ReadReq_Options_AllOptions{AllOption: &streams.ReadReq_Options_AllOptions_Start{Start: &shared.Empty{}}}}
	o.CountOption = &streams.ReadReq_Options_Subscription{Subscription: &streams.ReadReq_Options_SubscriptionOptions{}}
	o.FilterOption = &streams.ReadReq_Options_Filter{Filter: &streams.ReadReq_Options_FilterOptions{
		Filter: &streams.ReadReq_Options_FilterOptions_EventType{EventType: &streams.ReadReq_Options_FilterOptions_Expression{Prefix: []string{"a"}}},
		Window: &streams.ReadReq_Options_FilterOptions_Max{Max: 32},
	}}
	if got, err := rawRead(t, rawClient(t, s), o); status.Code(err) != codes.Unknown {
		t.Errorf("without an interval it answers %v, %v", got, err)
	}
}
