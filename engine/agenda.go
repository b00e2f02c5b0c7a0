package engine

import (
	"container/heap"
	"context"
	"strings"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

// Agenda knows every job that is not final and when it is due, from the log
// alone. It is a finder, not a judge: Advance decides from the job's own stream,
// so an agenda that lags costs time and nothing else. It is not safe for
// concurrent use.
type Agenda struct {
	checkpoint eventlog.Checkpoint
	entries    map[string]*entry
	due        dueHeap
	busy       map[string]bool // handed out by Next, whatever became of them since
	stopped    map[string]bool // streams that cannot be decoded
	waiting    int             // entries for a human
	peers      peers
}

type entry struct {
	stream   string
	revision uint64 // of the newest event that was swept
	due      time.Time
	from     time.Time // when this process may take it: others may come before it
	waiting  bool      // for a human
	at       int       // index in the heap, -1 when not in it
}

// NewAgenda is an agenda that has read nothing yet.
func NewAgenda() *Agenda {
	return &Agenda{entries: map[string]*entry{}, busy: map[string]bool{}, stopped: map[string]bool{}}
}

// Share makes the agenda leave a job for a while to the process that comes first for
// it, among those that have claimed jobs in the last minute of the log. worker is the
// name under which this process claims. Call it before the first Sweep.
func (a *Agenda) Share(worker string) {
	a.peers = peers{self: worker, seen: map[string]time.Time{}}
}

// reorder gives every job anew to the processes that there are.
func (a *Agenda) reorder() {
	for _, x := range a.entries {
		x.from = x.due.Add(a.peers.wait(x.stream))
	}
	heap.Init(&a.due)
	a.peers.stale = false
}

// progressEvery is after how many events a sweep reports.
const progressEvery = 10_000

// Sweep reads the log from where the last sweep ended. progress, which may be
// nil, is called now and then with the number of events read so far.
func (a *Agenda) Sweep(ctx context.Context, log eventlog.Log, progress func(events int)) error {
	n := 0
	for r, err := range log.ReadAll(ctx, a.checkpoint.Position) {
		if err != nil {
			return err
		}
		a.apply(r)
		if n++; n%progressEvery == 0 && progress != nil {
			progress(n)
		}
	}
	if a.peers.bury(); a.peers.stale {
		a.reorder()
	}
	return nil
}

func (a *Agenda) apply(r eventlog.Recorded) {
	a.checkpoint = eventlog.CheckpointOf(r)
	if !strings.HasPrefix(r.Stream, job.JobStreams) {
		return
	}
	a.peers.at(r.Time)
	next, err := job.DueOf(r.Type, r.Data, r.Time)
	if err != nil {
		a.remove(r.Stream)
		a.stopped[r.Stream] = true
		return
	}
	if a.stopped[r.Stream] {
		return
	}
	a.peers.claimed(next.Worker, r.Time)
	switch next.Schedule {
	case job.DueAt:
		a.put(r.Stream, r.Revision, next.At, false)
	case job.Waiting:
		a.put(r.Stream, r.Revision, time.Time{}, true)
	case job.Closed:
		a.remove(r.Stream)
	}
}

func (a *Agenda) put(stream string, revision uint64, due time.Time, waiting bool) {
	x, ok := a.entries[stream]
	if !ok {
		x = &entry{stream: stream, at: -1}
		a.entries[stream] = x
	}
	if x.waiting != waiting {
		x.waiting = waiting
		a.waiting += map[bool]int{true: 1, false: -1}[waiting]
	}
	x.due, x.revision = due, revision
	a.place(x)
}

// place keeps the heap to the entries that Next may hand out.
func (a *Agenda) place(x *entry) {
	x.from = x.due.Add(a.peers.wait(x.stream))
	switch wanted := !x.waiting && !a.busy[x.stream]; {
	case wanted && x.at < 0:
		heap.Push(&a.due, x)
	case wanted:
		heap.Fix(&a.due, x.at)
	case x.at >= 0:
		heap.Remove(&a.due, x.at)
	}
}

func (a *Agenda) remove(stream string) {
	x, ok := a.entries[stream]
	if !ok {
		return
	}
	if x.waiting {
		a.waiting--
	}
	if x.at >= 0 {
		heap.Remove(&a.due, x.at)
	}
	delete(a.entries, stream)
}

// Next hands out the job that this process could have taken the longest ago, if one
// is due. It is not handed out again before Done.
func (a *Agenda) Next(now time.Time) (stream string, ok bool) {
	if len(a.due) == 0 || a.due[0].from.After(now) {
		return "", false
	}
	x := a.due[0]
	a.busy[x.stream] = true
	a.place(x)
	return x.stream, true
}

// Done takes a job back after Advance. Call Sweep before, so that what Advance
// recorded is known. A verdict about an older revision than the newest one swept
// is void: an event that came later knows better.
func (a *Agenda) Done(stream string, v Verdict) {
	delete(a.busy, stream)
	x, ok := a.entries[stream]
	if !ok {
		return // final, or stopped
	}
	if x.revision <= v.Revision {
		switch v.Schedule {
		case job.DueAt:
			if v.At.After(x.due) {
				x.due = v.At
			}
		case job.Waiting:
			a.put(stream, x.revision, time.Time{}, true)
		case job.Closed:
			a.remove(stream)
			return
		}
	}
	a.place(x)
}

// Stop takes a job off the agenda that cannot be decoded.
func (a *Agenda) Stop(stream string) {
	delete(a.busy, stream)
	a.remove(stream)
	a.stopped[stream] = true
}

// NextDue is when Next has the earliest job; ok is false when it never has one.
func (a *Agenda) NextDue() (at time.Time, ok bool) {
	if len(a.due) == 0 {
		return time.Time{}, false
	}
	return a.due[0].from, true
}

// Backlog is how many jobs the agenda has.
type Backlog struct {
	Open    int // not final, in the hands of workers
	Human   int // in needs_reconciliation, for an operator
	Stopped int // undecodable
}

// Backlog counts the jobs.
func (a *Agenda) Backlog() Backlog {
	return Backlog{Open: len(a.entries) - a.waiting, Human: a.waiting, Stopped: len(a.stopped)}
}

// Checkpoint is how far the agenda has read.
func (a *Agenda) Checkpoint() eventlog.Checkpoint { return a.checkpoint }

// dueHeap orders by the time from which this process may take a job, and by name to be the same in every run.
type dueHeap []*entry

func (h dueHeap) Len() int { return len(h) }
func (h dueHeap) Less(i, j int) bool {
	if !h[i].from.Equal(h[j].from) {
		return h[i].from.Before(h[j].from)
	}
	return h[i].stream < h[j].stream
}
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}
func (h *dueHeap) Push(x any) {
	x.(*entry).at = len(*h)
	*h = append(*h, x.(*entry))
}
func (h *dueHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	x.at = -1
	*h = old[:len(old)-1]
	return x
}

// Knows reports whether the job is on the agenda, or known to be stopped.
func (a *Agenda) Knows(stream string) bool {
	_, open := a.entries[stream]
	return open || a.stopped[stream]
}
