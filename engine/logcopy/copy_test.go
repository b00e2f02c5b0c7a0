package logcopy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/engine/logcopy"
)

func TestCopyBetweenBackends(t *testing.T) {
	for name, open := range map[string]func(testing.TB) eventlog.Log{
		"memory": func(testing.TB) eventlog.Log { return memory.New() },
		"sqlite": openSQLite,
	} {
		t.Run(name, func(t *testing.T) {
			source, target := open(t), openSQLite(t)
			for i := range 200 {
				e := event(i)
				e.Data = [][]byte{nil, {0, 0xff}, bytes.Repeat([]byte("x"), i*50)}[i%3]
				e.Time = noon.AddDate(10*i-1000, 0, 0)
				must(t, source, fmt.Sprintf("s-%d", i/4%9), e)
			}
			counts, err := copyAll(t.Context(), source, target)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, source, target)
			end := eventlog.NewPosition(200, 200)
			want := logcopy.Counts{Events: 200, Streams: 9,
				Source: logcopy.Span{First: eventlog.NewPosition(1, 1), Last: end},
				Target: logcopy.Span{First: eventlog.NewPosition(1, 1), Last: end}}
			if counts != want {
				t.Errorf("counts %+v, want %+v", counts, want)
			}

			// Again, and there and back: nothing is added.
			want.Found = 200
			for _, pair := range [][2]eventlog.Log{{source, target}, {target, source}} {
				if counts, err := copyAll(t.Context(), pair[0], pair[1]); err != nil || counts != want {
					t.Errorf("counts %+v (error %v), want %+v", counts, err, want)
				}
			}
			equal(t, source, target)
		})
	}
}

func TestCopyOfNothing(t *testing.T) {
	counts, err := copyAll(t.Context(), memory.New(), openSQLite(t))
	if err != nil || counts != (logcopy.Counts{}) {
		t.Errorf("counts %+v, error %v", counts, err)
	}
}

// What the source gets after a copy is what the next one appends.
func TestCopyGoesOn(t *testing.T) {
	source, target := filled(t, 50), memory.New()
	if _, err := copyAll(t.Context(), source, target); err != nil {
		t.Fatal(err)
	}
	must(t, source, "update-1-0", event(50), event(51))
	must(t, source, "update-1-new", event(52))
	counts, err := copyAll(t.Context(), source, target)
	if err != nil || counts.Found != 50 || counts.Events != 53 {
		t.Errorf("counts %+v, error %v; want 53 events, 50 of them found", counts, err)
	}
	equal(t, source, target)
}

// An append has at most what every backend takes, and neighbours of one stream
// go together.
func TestBatches(t *testing.T) {
	source, target := memory.New(), memory.New()
	n := 0
	put := func(stream string, size int) {
		e := event(n)
		e.Data = bytes.Repeat([]byte{byte(n)}, size)
		must(t, source, stream, e)
		n++
	}
	for range 250 {
		put("many", 10) // 100, 100, 50
	}
	for range 7 {
		put("large", 200<<10) // 2, 2, 2, 1
	}
	put("large", 2<<20) // alone
	put("large", 10)
	for i := range 6 {
		put([]string{"turn", "by"}[i%2], 10) // one each
	}
	must(t, source, "twice", event(5000))
	if _, err := source.Append(t.Context(), "twice", eventlog.Exactly(0), event(5000)); err != nil { // one each
		t.Fatal(err)
	}

	var sizes []int
	target2 := watched{Log: target, before: func(stream string, _ eventlog.Expected, events []eventlog.Proposed) error {
		total := 0
		for _, e := range events {
			total += len(e.Data)
		}
		if total > 512<<10 && len(events) > 1 {
			t.Errorf("%d bytes in an append of %d events to %s", total, len(events), stream)
		}
		sizes = append(sizes, len(events))
		return nil
	}}
	if _, err := copyAll(t.Context(), source, target2); err != nil {
		t.Fatal(err)
	}
	equal(t, source, target)
	if got, want := fmt.Sprint(sizes), "[100 100 50 2 2 2 1 1 1 1 1 1 1 1 1 1 1]"; got != want {
		t.Errorf("appends of %s events, want %s", got, want)
	}
}

// The copy reads back what it appended while it still appends.
func TestComparesAlongTheWay(t *testing.T) {
	const events = 25_000
	source, target := filled(t, events), memory.New()
	spoilt := 0
	l := watched{Log: target, read: func(r eventlog.Recorded) (eventlog.Recorded, bool) {
		if n, _ := r.Position.Parts(); n == 3 {
			spoilt++
			r.Data = []byte("{}")
		}
		return r, true
	}}
	var different *logcopy.DifferenceError
	if _, err := copyAll(t.Context(), source, l); !errors.As(err, &different) || different.Number != 3 || different.Field != "data" {
		t.Errorf("error %v, want the data of event 3", err)
	}
	if tail, err := target.Tail(t.Context()); err != nil || tail.Compare(eventlog.NewPosition(events/2, events/2)) > 0 {
		t.Errorf("the copy went on to %s (error %v)", tail, err)
	}
}

func TestProgressGrows(t *testing.T) {
	last := uint64(0)
	c := logcopy.New(filled(t, 12_000), memory.New(), logcopy.Options{Sleep: new(waits).sleep, Progress: func(events uint64) {
		if events <= last {
			t.Errorf("%d events behind %d", events, last)
		}
		last = events
	}})
	if err := c.ToTail(t.Context()); err != nil || last != 12_000 {
		t.Errorf("progress up to %d, error %v", last, err)
	}
}

// Two copies into one target help each other.
func TestTwoCopiesAtOnce(t *testing.T) {
	source, target := filled(t, 3000), openSQLite(t)
	var both sync.WaitGroup
	for range 3 {
		both.Go(func() {
			if _, err := copyAll(t.Context(), source, target); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	equal(t, source, target)
}

// Follow takes along what is appended while it runs, and what came between its
// last look and its end is taken by ToTail.
func TestFollow(t *testing.T) {
	source, target := memory.New(), openSQLite(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	polled := make(chan struct{})
	c := logcopy.New(source, target, logcopy.Options{Sleep: func(ctx context.Context, d time.Duration) error {
		if d > time.Second {
			t.Errorf("looks every %s", d)
		}
		select {
		case polled <- struct{}{}:
		case <-ctx.Done():
		}
		return ctx.Err()
	}})
	ended := make(chan error, 1)
	go func() { ended <- c.Follow(ctx) }()
	n := 0
	for range 20 {
		<-polled
		if n > 0 {
			equal(t, source, target)
		}
		for range 5 {
			must(t, source, fmt.Sprintf("s-%d", n%4), event(n))
			n++
		}
		<-polled // the look that had begun
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	must(t, source, "late", event(n))
	if err := c.ToTail(t.Context()); err != nil {
		t.Fatal(err)
	}
	equal(t, source, target)
	if counts := c.Counts(); counts.Events != uint64(n)+1 || counts.Found != 0 {
		t.Errorf("counts %+v, want %d events, none found", counts, n+1)
	}
}

func TestFollowEndsWithAnError(t *testing.T) {
	source, target := filled(t, 5), memory.New()
	must(t, target, "stranger", event(900))
	c := logcopy.New(source, target, logcopy.Options{Sleep: new(waits).sleep})
	if err := c.Follow(t.Context()); err == nil || !strings.Contains(err.Error(), "stranger") {
		t.Errorf("error %v", err)
	}
}
