//go:build unix

package peers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/sqlite"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/ingress"
	"github.com/leadonce/leadonce/ingress/metrics"
	"github.com/leadonce/leadonce/ingress/telegram"
	"github.com/leadonce/leadonce/ingress/telegram/telegramtest"
)

const (
	bot    = 424242
	secret = "a-secret_of-the-benchmark"
)

const (
	rounds = 3
	turn   = time.Second // of one server, in a round
)

// The sizes of pgx's pool: its own default, which tutorials leave as it is, and
// those that are tried for the peers that are to be at their best.
var (
	defaultPool = []int32{0}
	bestPool    = []int32{4, 16, 64}
)

// BenchmarkBesidePostgreSQL prints the accepted updates a second of each, and how
// many times the peers' leadonce accepts.
func BenchmarkBesidePostgreSQL(b *testing.B) {
	c := startCluster(b)
	admin, err := pgxpool.New(b.Context(), c.socket())
	if err != nil {
		b.Fatal(err)
	}
	defer admin.Close()
	if err := migrate(b.Context(), admin); err != nil {
		b.Fatal(err)
	}
	peers := []*peer{
		{name: "textbook", make: textbook, pools: defaultPool, url: c.loopback(), count: "SELECT count(*) FROM updates"},
		{name: "tuned", make: lean, pools: bestPool, url: c.socket(), count: "SELECT count(*) FROM lean_updates"},
		{name: "river", make: uniqueInsert, pools: bestPool, url: c.socket(), count: "SELECT count(*) FROM river_job"},
	}
	for _, connections := range []int{64, 256} {
		b.Run(fmt.Sprint(connections), func(b *testing.B) {
			ours, stored := leadonce(b)
			for _, p := range peers {
				p.begin(b, connections)
			}
			for b.Loop() {
				for range rounds {
					run(b, ours, connections)
					for _, p := range peers {
						run(b, p.load, connections)
					}
				}
			}
			if got := stored(); got != ours.Accepted() {
				b.Errorf("leadonce stored %d updates of %d accepted", got, ours.Accepted())
			}
			b.ReportMetric(ours.Rate(), "leadonce/s")
			for _, p := range peers {
				p.check(b, admin)
				b.ReportMetric(p.load.Rate(), p.name+"/s")
				b.ReportMetric(ours.Rate()/p.load.Rate(), "times-"+p.name)
				b.ReportMetric(float64(p.pool), p.name+"-pool")
			}
			b.ReportMetric(0, "ns/op") // an iteration lasts a fixed time
		})
	}
}

func run(b *testing.B, l *telegramtest.Load, connections int) {
	b.Helper()
	if err := l.Run(connections, turn); err != nil {
		b.Fatal(err)
	}
}

// peer is a handler over PostgreSQL.
type peer struct {
	name  string
	make  func(*pgxpool.Pool) (save, error)
	count string // query: how many updates are stored

	pools []int32 // sizes to try
	url   string

	servers int64
	stored  int   // by the servers before this one
	pool    int32 // size
	load    *telegramtest.Load
}

// begin finds the best size of the pool and serves with it.
func (p *peer) begin(b *testing.B, connections int) {
	b.Helper()
	best, chosen := 0.0, int32(0)
	for _, size := range p.pools {
		load, stop := p.serve(b, size)
		run(b, load, connections)
		stop()
		p.stored += load.Accepted()
		if load.Rate() > best {
			best, chosen = load.Rate(), size
		}
	}
	var stop func()
	p.load, stop = p.serve(b, chosen)
	b.Cleanup(stop)
}

// serve begins behind the updates that earlier servers may have stored.
func (p *peer) serve(b *testing.B, size int32) (*telegramtest.Load, func()) {
	b.Helper()
	config, err := pgxpool.ParseConfig(p.url)
	if err != nil {
		b.Fatal(err)
	}
	if size > 0 {
		config.MaxConns = size
	}
	p.pool = config.MaxConns
	pool, err := pgxpool.NewWithConfig(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	save, err := p.make(pool)
	if err != nil {
		b.Fatal(err)
	}
	load, stop := serve(b, webhook(save))
	p.servers++
	load.Skip(p.servers * 10_000_000)
	return load, func() { stop(); pool.Close() }
}

// check compares what was answered with what is stored.
func (p *peer) check(b *testing.B, admin *pgxpool.Pool) {
	b.Helper()
	var rows int
	if err := admin.QueryRow(b.Context(), p.count).Scan(&rows); err != nil {
		b.Fatal(err)
	}
	p.stored += p.load.Accepted()
	if rows != p.stored {
		b.Errorf("%s stored %d updates of %d accepted", p.name, rows, p.stored)
	}
}

// serve serves a handler on loopback, with the limits of leadonce's own server.
func serve(b *testing.B, handler http.Handler) (*telegramtest.Load, func()) {
	b.Helper()
	server, err := ingress.Server(ingress.ServerConfig{}, handler)
	if err != nil {
		b.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = ingress.Serve(server, listener) }()
	return &telegramtest.Load{Addr: listener.Addr().String(), Bot: bot, Secret: secret}, func() { _ = server.Close() }
}

// leadonce serves the real handler over the embedded log; stored counts the
// updates in it.
func leadonce(b *testing.B) (load *telegramtest.Load, stored func() int) {
	b.Helper()
	log, err := sqlite.Open(b.Context(), b.TempDir()+"/log.db", sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = log.Close() })
	m := metrics.New()
	e, err := engine.New(engine.Config{
		Log: m.Observe(log, clock{}, ids{}), CRM: noCRM{}, Clock: clock{}, IDs: ids{}, Observer: m, Plan: job.DefaultPlan, Worker: "none",
		Policy: job.Policy{
			MaxAttempts: 8, RetryFirst: time.Second, RetryMax: time.Minute,
			Lease: time.Minute, CallTimeout: 20 * time.Second, ClockSkew: time.Second,
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	handler, err := telegram.New(telegram.Config{
		Bots: []telegram.Bot{{ID: bot, Secrets: []string{secret}}}, Accepter: e, Observe: m.Delivered,
	})
	if err != nil {
		b.Fatal(err)
	}
	load, stop := serve(b, ingress.Router(ingress.Config{Telegram: handler}))
	b.Cleanup(stop)
	return load, func() int { return int(log.Stats().Events) }
}

// clock and ids are those of the command.
type clock struct{}

func (clock) Now() time.Time                             { return time.Now() }
func (clock) Sleep(context.Context, time.Duration) error { panic("nobody sleeps here") }

type ids struct{}

func (ids) New() eventlog.EventID { return eventlog.EventID(uuid.New()) }

// noCRM is never called: no worker runs.
type noCRM struct{}

var errNoCRM = errors.New("there is no CRM here")

func (noCRM) Describe() crm.Description { return crm.Description{Name: "none", Class: crm.None} }
func (noCRM) Create(context.Context, crm.Operation) (crm.Receipt, error) {
	return crm.Receipt{}, errNoCRM
}
func (noCRM) Find(context.Context, string, time.Time) ([]crm.Receipt, error) { return nil, errNoCRM }
