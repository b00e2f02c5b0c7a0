package reply_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/ingress/botapi/botapitest"
	"github.com/leadonce/leadonce/ingress/reply"
)

// Several processes follow one log while outcomes are recorded: each is told once.
func TestSeveralRepliersTellOnce(t *testing.T) {
	w := newWorld(t)
	const repliers, jobs = 3, 60
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for i := range repliers {
		c := w.config()
		c.Worker = fmt.Sprint("w-", i)
		c.Load, c.Save = nil, nil
		running.Go(func() { _ = reply.Run(ctx, context.Background(), c) })
	}
	for id := range int64(jobs) {
		if id%10 == 0 {
			w.api.Fail("sendMessage", botapitest.Fault{Cut: true})
		}
		w.done(id)
	}
	w.await(func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.told) == jobs
	})
	stop()
	running.Wait()
	results := map[reply.Result]int{}
	for _, told := range w.told {
		results[told]++
	}
	if sent := len(w.api.Messages()); sent != jobs || w.api.Calls("sendMessage") != jobs || results[reply.Sent]+results[reply.Unknown] != jobs || results[reply.Unknown] != jobs/10 {
		t.Errorf("%d messages in %d requests, %v; want %d", sent, w.api.Calls("sendMessage"), results, jobs)
	}
	for id := range int64(jobs) {
		if p := w.reply(id).Phase; p != job.ReplyIsSent && p != job.ReplyIsUnknown {
			t.Errorf("the reply about %d is %q", id, p)
		}
	}
}

// await waits for what other goroutines do.
func (w *world) await(done func() bool) {
	w.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.After(20 * time.Second)
	for !done() {
		select {
		case <-tick.C:
		case <-late:
			w.Fatalf("waited in vain; the log:\n%s", w.lines.String())
		}
	}
}
