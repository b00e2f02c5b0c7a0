package telegram_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/eventlog/sqlite"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/ingress"
	"github.com/leadonce/leadonce/ingress/metrics"
	"github.com/leadonce/leadonce/ingress/telegram"
	"github.com/leadonce/leadonce/ingress/telegram/telegramtest"
)

// BenchmarkWebhook measures what durability costs: updates a second that are
// accepted over loopback HTTP and stored in the embedded log, against the same
// handler that stores nothing. Both take turns in one run on the same cores, so
// the ratio holds for any machine. The client shares the cores with the server.
func BenchmarkWebhook(b *testing.B) {
	for _, connections := range []int{64, 256} {
		b.Run(fmt.Sprint(connections), func(b *testing.B) {
			stored := newTarget(b, newStore(b))
			bare := newTarget(b, noStore{})
			for b.Loop() {
				for range 3 {
					run(b, bare, connections)
					run(b, stored, connections)
				}
			}
			b.ReportMetric(stored.Rate(), "stored/s")
			b.ReportMetric(bare.Rate(), "bare/s")
			b.ReportMetric(stored.Rate()/bare.Rate(), "ratio")
			storedP99, bareP99 := stored.Quantile(.99).Seconds(), bare.Quantile(.99).Seconds()
			b.ReportMetric(storedP99*1e3, "stored-p99-ms")
			b.ReportMetric(bareP99*1e3, "bare-p99-ms")
			b.ReportMetric(storedP99/bareP99, "p99-ratio")
			b.ReportMetric(0, "ns/op") // an iteration lasts a fixed time
		})
	}
}

// noStore accepts everything and keeps nothing.
type noStore struct{}

func (noStore) Accept(_ context.Context, u job.Update) (job.Key, engine.Acceptance, error) {
	return u.Key(), engine.Stored, nil
}

func (noStore) Stored(context.Context, job.Update) (bool, error) { return false, nil }

func newStore(b *testing.B) telegram.Accepter {
	b.Helper()
	log, err := sqlite.Open(b.Context(), b.TempDir()+"/log.db", sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = log.Close() })
	m := metrics.New()
	e, err := engine.New(engine.Config{
		Log: m.Observe(log, systemClock{}, randomIDs{}), CRM: &connector{}, Clock: systemClock{}, IDs: randomIDs{},
		Observer: m, Plan: job.DefaultPlan, Worker: "w", Policy: testPolicy,
	})
	if err != nil {
		b.Fatal(err)
	}
	return e
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) Sleep(ctx context.Context, d time.Duration) error {
	panic("nobody sleeps here")
}

func run(b *testing.B, l *telegramtest.Load, connections int) {
	b.Helper()
	if err := l.Run(connections, time.Second); err != nil {
		b.Fatal(err)
	}
}

func newTarget(b *testing.B, accepter telegram.Accepter) *telegramtest.Load {
	b.Helper()
	m := metrics.New()
	handler, err := telegram.New(telegram.Config{
		Bots: []telegram.Bot{{ID: bot, Secrets: []string{secret}}}, Accepter: accepter, Observe: m.Delivered,
	})
	if err != nil {
		b.Fatal(err)
	}
	server, err := ingress.Server(ingress.ServerConfig{}, ingress.Router(ingress.Config{Telegram: handler}))
	if err != nil {
		b.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = ingress.Serve(server, listener) }()
	b.Cleanup(func() { _ = server.Close() })
	return &telegramtest.Load{Addr: listener.Addr().String(), Bot: bot, Secret: secret}
}

// BenchmarkHandler is the handler alone, without a network and a store.
func BenchmarkHandler(b *testing.B) {
	handler, err := telegram.New(telegram.Config{
		Bots: []telegram.Bot{{ID: bot, Secrets: []string{secret}}}, Accepter: noStore{}, Observe: metrics.New().Delivered,
	})
	if err != nil {
		b.Fatal(err)
	}
	delivery, _ := telegramtest.Delivery(bot, secret)
	_, body, _ := strings.Cut(string(delivery), "\r\n\r\n")
	b.ReportAllocs()
	r, reader := request(body), strings.NewReader(body)
	for b.Loop() {
		reader.Reset(body)
		r.Body = io.NopCloser(reader)
		w := &answerWriter{}
		handler.ServeHTTP(w, r)
		if w.status != http.StatusOK {
			b.Fatal(w.status)
		}
	}
}
