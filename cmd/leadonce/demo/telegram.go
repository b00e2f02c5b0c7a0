package demo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// telegram delivers updates as Telegram's server does: in order per chat, up to
// 40 connections, again after everything but a 2xx, and at times twice.
// Its waits are shortened: from 50 ms to 1 s instead of 1 s to 2 min.
type telegram struct {
	bases       []string // in turn, as a load balancer has them
	secret      string
	client      *http.Client
	connections chan struct{}

	acknowledged atomic.Int64 // updates
	deliveries   atomic.Int64 // requests made
	again        atomic.Int64 // 2xx for what had been answered 2xx
}

const (
	connections   = 40
	firstWait     = 50 * time.Millisecond
	longestWait   = time.Second
	answerTimeout = 5 * time.Second
)

func newTelegram(bases []string, secret string) *telegram {
	return &telegram{
		bases: bases, secret: secret,
		client:      &http.Client{Timeout: answerTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: connections}},
		connections: make(chan struct{}, connections),
	}
}

// deliver delivers all of them within about spread, and returns when each is
// acknowledged or ctx has ended.
func (t *telegram) deliver(ctx context.Context, list []update, spread time.Duration, seed uint64) {
	var all sync.WaitGroup
	queues := map[int64]chan update{}
	pace := time.NewTicker(max(spread/time.Duration(len(list)), time.Microsecond))
	defer pace.Stop()
	for _, u := range list {
		queue, ok := queues[u.chat]
		if !ok {
			queue = make(chan update, len(list))
			queues[u.chat] = queue
			draw := rand.New(rand.NewPCG(seed, uint64(u.chat)))
			all.Go(func() {
				for u := range queue {
					t.one(ctx, u, draw)
				}
			})
		}
		queue <- u
		select {
		case <-pace.C:
		case <-ctx.Done():
		}
	}
	for _, queue := range queues {
		close(queue)
	}
	all.Wait()
}

// one delivers u until it is acknowledged.
func (t *telegram) one(ctx context.Context, u update, draw *rand.Rand) {
	twice, repeat := draw.IntN(10) == 0, draw.IntN(10) == 0
	for wait := firstWait; ctx.Err() == nil; wait = min(2*wait, longestWait) {
		acknowledged := 0
		if twice { // the first one timed out at Telegram and is still running here
			answers := make(chan bool, 2)
			for range 2 {
				go func() { answers <- t.post(ctx, u) }()
			}
			for range 2 {
				if <-answers {
					acknowledged++
				}
			}
		} else if t.post(ctx, u) {
			acknowledged++
		}
		if acknowledged > 0 {
			t.acknowledged.Add(1)
			t.again.Add(int64(acknowledged - 1))
			break
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
	if repeat && t.post(ctx, u) { // the 200 got lost on its way
		t.again.Add(1)
	}
}

// post makes one request and reports whether it was answered 2xx.
func (t *telegram) post(ctx context.Context, u update) bool {
	t.connections <- struct{}{}
	defer func() { <-t.connections }()
	turn := t.deliveries.Add(1)
	base := t.bases[turn%int64(len(t.bases))]
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("%s/telegram/%d", base, u.bot), bytes.NewReader(u.body))
	if err != nil {
		return false
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Telegram-Bot-Api-Secret-Token", t.secret)
	response, err := t.client.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err == nil && response.StatusCode/100 == 2
}
