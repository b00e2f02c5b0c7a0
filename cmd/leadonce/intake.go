package main

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/ingress"
	"github.com/leadonce/leadonce/ingress/metrics"
	longpoll "github.com/leadonce/leadonce/ingress/poll"
	"github.com/leadonce/leadonce/ingress/telegram"
)

// intake is what accepts updates; nil in a process that only makes leads.
func (a *app) intake(e *engine.Engine, m *metrics.Metrics) (http.Handler, error) {
	if a.config.Role == roleWorker {
		return nil, nil
	}
	if a.config.Poll {
		return nil, a.openPoll(e, m)
	}
	var bots []telegram.Bot
	for _, b := range a.config.Bots {
		bots = append(bots, telegram.Bot{ID: b.ID, Secrets: b.Secrets})
		m.Expect(b.ID)
	}
	var trusted []netip.Prefix
	for _, p := range a.config.TrustedProxies {
		trusted = append(trusted, netip.MustParsePrefix(p)) // checked
	}
	handler, err := telegram.New(telegram.Config{
		Bots: bots, Accepter: waking{e, a.runner.Wake}, Logger: a.logger, Observe: m.Delivered,
		Full:   a.full,
		Remote: func(r *http.Request) string { return ingress.ClientAddr(r, trusted).String() },
	})
	if err != nil {
		return nil, mistake("bots: %v", err)
	}
	return handler, nil
}

// openPoll makes what fetches updates.
func (a *app) openPoll(e *engine.Engine, m *metrics.Metrics) error {
	var ids []int64
	for _, b := range a.config.Bots {
		ids = append(ids, b.ID)
	}
	a.fetches = longpoll.NewWatch(systemClock{}.Now, ids...)
	a.poll = &longpoll.Config{
		Accepter: waking{e, a.runner.Wake}, Full: a.full, Observe: m.Delivered, Logger: a.logger,
		Fetched: func(f longpoll.Fetch) { m.Fetched(f); a.fetches.Fetched(f) },
	}
	for _, b := range a.config.Bots {
		client, err := botClient(b.ID, apiURL(), 0)
		if err != nil {
			return err
		}
		a.poll.Bots = append(a.poll.Bots, client)
		m.Expect(b.ID)
		m.Fetches(b.ID, func() time.Duration { return a.fetches.Silence(b.ID) })
	}
	return nil
}

// full reports whether the backlog has no room.
func (a *app) full() bool { return a.runner.Backlog().Open >= a.config.MaxBacklog }

// waking is the engine's intake, telling the runner of what is new.
type waking struct {
	*engine.Engine
	wake func()
}

func (w waking) Accept(ctx context.Context, u job.Update) (job.Key, engine.Acceptance, error) {
	key, how, err := w.Engine.Accept(ctx, u)
	if err == nil && how != engine.Repeated {
		w.wake()
	}
	return key, how, err
}
