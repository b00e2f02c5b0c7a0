package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/eventlog"
)

// runner drives the engine: one dispatcher that owns the agenda, and a fixed
// number of workers that take one job at a time. All goroutines of the job side
// of the program start here.
type runner struct {
	engine   *engine.Engine
	log      eventlog.Log
	observer engine.Observer
	workers  int

	snapshotPath string           // empty: none is kept
	progress     func(events int) // of the first sweep
	wakeUp       chan struct{}    // of length 1
	ready        chan struct{}    // closed after the first sweep
	work         chan string      // dispatcher → workers
	results      chan engine.Turn // workers → dispatcher
	backlog      atomic.Pointer[engine.Backlog]
	foreign      atomic.Bool // the log lacks what was read in it
}

const (
	// sweepEvery is how long an append of another process can stay unseen.
	sweepEvery = 250 * time.Millisecond
	// snapshotEvery bounds what a restart has to read again.
	snapshotEvery = 15 * time.Second
	// compareEvery is how long a log can be another one unnoticed.
	compareEvery = 10 * time.Second
)

func newRunner(e *engine.Engine, observer engine.Observer, workers int, snapshotPath string, progress func(int)) *runner {
	r := &runner{
		engine: e, log: e.Log, observer: observer, workers: workers,
		snapshotPath: snapshotPath, progress: progress,
		wakeUp: make(chan struct{}, 1), ready: make(chan struct{}),
		work: make(chan string), results: make(chan engine.Turn, workers),
	}
	r.backlog.Store(&engine.Backlog{})
	return r
}

// Wake tells the dispatcher that there is something new in the log.
func (r *runner) Wake() {
	select {
	case r.wakeUp <- struct{}{}:
	default:
	}
}

// Backlog is how many jobs there were at the last sweep.
func (r *runner) Backlog() engine.Backlog { return *r.backlog.Load() }

// errForeign: what is swept from here on would not show the new log's jobs, and leads
// may have been made of which it knows nothing.
var errForeign = errors.New("the log does not have what this process has read in it: it was restored, cut or replaced. End every process on it, run `leadonce job doubt --by WHO --reason WHY`, and start again")

// Health is an error when nothing can be worked on.
func (r *runner) Health() error {
	if r.foreign.Load() {
		return errForeign
	}
	return nil
}

// compare finds out whether the log is still the one that the agenda was made of.
func (r *runner) compare(ctx context.Context, a *engine.Agenda) {
	ours, err := a.Checkpoint().BelongsTo(ctx, r.log)
	if err != nil {
		return // the next sweep says so
	}
	if was := r.foreign.Swap(!ours); !ours && !was {
		r.observer.Troubled("", errForeign)
	}
}

// Ready is closed once every open job is known.
func (r *runner) Ready() <-chan struct{} { return r.ready }

// Run works until ctx ends, then lets the jobs in hand finish; calls bounds them
// in turn: when it ends too, their requests are cut.
func (r *runner) Run(ctx, calls context.Context) {
	var workers sync.WaitGroup
	for range r.workers {
		workers.Go(func() {
			for stream := range r.work {
				r.results <- r.advance(calls, stream)
			}
		})
	}
	a := r.restore(ctx)
	a.Share(r.engine.Worker)
	r.dispatch(ctx, a)
	close(r.work)
	workers.Wait() // their results fit into the channel
	r.save(a)
}

// dispatch hands out what is due until ctx ends.
func (r *runner) dispatch(ctx context.Context, a *engine.Agenda) {
	var finished []engine.Turn
	busy := 0 // jobs in the workers' hands
	saved, compared := time.Now(), time.Now()
	swept := false
	for ctx.Err() == nil {
		err := a.Sweep(ctx, r.log, r.progress)
		if err != nil && ctx.Err() == nil {
			r.observer.Troubled("", fmt.Errorf("sweep the log: %w", err))
		}
		if err == nil {
			if !swept {
				swept = true
				close(r.ready)
			}
			busy -= len(finished)
			finished = conclude(a, finished)
			if time.Since(compared) > compareEvery {
				r.compare(ctx, a)
				compared = time.Now()
			}
			if !r.foreign.Load() {
				busy += r.handOut(ctx, a, r.workers-busy)
			}
		}
		backlog := a.Backlog()
		r.backlog.Store(&backlog)
		if time.Since(saved) > snapshotEvery {
			r.save(a)
			saved = time.Now()
		}
		finished = r.wait(ctx, a, finished, err == nil && busy < r.workers)
	}
}

// conclude gives finished jobs back to the agenda. It follows a sweep, so the
// agenda knows what they recorded.
func conclude(a *engine.Agenda, finished []engine.Turn) []engine.Turn {
	for _, turn := range finished {
		a.Conclude(turn)
	}
	return finished[:0]
}

// handOut gives due jobs to idle workers.
func (r *runner) handOut(ctx context.Context, a *engine.Agenda, idle int) (handed int) {
	for ; handed < idle; handed++ {
		stream, ok := a.Next(time.Now())
		if !ok {
			break
		}
		select {
		case r.work <- stream:
		case <-ctx.Done():
			return handed
		}
	}
	return handed
}

// wait returns when there may be something to do: a finished job, news, a job
// that is due and can be handed out, or the time for a sweep.
func (r *runner) wait(ctx context.Context, a *engine.Agenda, finished []engine.Turn, idle bool) []engine.Turn {
	pause := sweepEvery
	if due, ok := a.NextDue(); ok && idle {
		pause = min(pause, max(time.Until(due), time.Millisecond))
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case f := <-r.results:
		finished = append(finished, f)
	case <-r.wakeUp:
	case <-timer.C:
	case <-ctx.Done():
	}
	for {
		select {
		case f := <-r.results:
			finished = append(finished, f)
		default:
			return finished
		}
	}
}

// advance takes one job one step on. A failure of ours, a panic included, costs
// this job a pause and the others nothing.
func (r *runner) advance(ctx context.Context, stream string) (turn engine.Turn) {
	defer func() {
		if p := recover(); p != nil {
			r.observer.Troubled(stream, fmt.Errorf("panic: %s\n%s", describe(p), debug.Stack()))
			turn = r.engine.Failed(stream)
		}
	}()
	return r.engine.Take(ctx, stream)
}

// describe is a panic's value where the runtime made it, else its type: a value
// may quote the update.
func describe(value any) string {
	if err, ok := value.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("a %T", value)
}

// restore starts from the snapshot, or from nothing.
func (r *runner) restore(ctx context.Context) *engine.Agenda {
	if r.snapshotPath == "" {
		return engine.NewAgenda()
	}
	data, err := os.ReadFile(r.snapshotPath)
	if err == nil {
		var a *engine.Agenda
		if a, err = engine.RestoreAgenda(ctx, r.log, data); err == nil {
			return a
		}
	}
	if !errors.Is(err, os.ErrNotExist) {
		r.observer.Troubled("", fmt.Errorf("%s is not used, the whole log is read: %w", r.snapshotPath, err))
	}
	return engine.NewAgenda()
}

// save writes the snapshot, whole or not at all. Jobs in the workers' hands are
// in it as due.
func (r *runner) save(a *engine.Agenda) {
	if r.snapshotPath == "" {
		return
	}
	data, err := a.Snapshot()
	if err == nil {
		err = replaceFile(r.snapshotPath, data)
	}
	if err != nil {
		r.observer.Troubled("", fmt.Errorf("save the agenda: %w", err))
	}
}

// replaceFile writes a file beside path and moves it over it. Only its owner may read it.
func replaceFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
