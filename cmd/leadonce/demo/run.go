package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	prng "math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options says how much of what. Every field must be set.
type Options struct {
	Executable string   // leadonce itself
	Classes    []string // one CRM and one engine for each
	Updates    int      // in all
	Kills      int      // in all
	Processes  int      // of the engine, for each CRM: 1, or that many of each role
	Faults     float64  // share of the CRM's requests that meet one
	Seed       uint64
	Keep       bool // leave the processes running until ctx ends
	Out        io.Writer
}

// Classes lists what a CRM can be.
var Classes = []string{"idempotency_key", "upsert", "unique_create", "lookup", "none"}

// ErrWrong says that something was lost or doubled, or did not end.
var ErrWrong = errors.New("the account is wrong")

// patience is after how long a demo that has not ended is ended. spread is the
// least time over which updates come, and perSecond the most of them in one.
const (
	patience  = 5 * time.Minute
	spread    = 8 * time.Second
	perSecond = 150
)

// Run runs a demo and prints its account. Its folder is removed when all is
// well.
func Run(ctx context.Context, o Options) error {
	dir, err := os.MkdirTemp("", "leadonce-demo-")
	if err != nil {
		return err
	}
	began := time.Now()
	d := &demo{Options: o, dir: dir, began: began}
	fmt.Fprintf(o.Out, "leadonce demo: %d updates of %d bots, %d CRM(s) with %.0f%% faults, %d SIGKILLs, seed %d\n",
		o.Updates, len(bots), len(o.Classes), 100*o.Faults, o.Kills, o.Seed)
	accounts, err := d.run(ctx)
	if err == nil {
		fmt.Fprintln(o.Out)
		writeAccounts(o.Out, accounts)
		for _, a := range accounts {
			if !a.clean() {
				err = ErrWrong
			}
		}
		fmt.Fprintf(o.Out, "took %s\n", time.Since(began).Round(time.Second))
	}
	if err == nil && o.Keep {
		d.keep(ctx)
	}
	err = errors.Join(err, d.stop())
	if err != nil || o.Keep {
		fmt.Fprintf(o.Out, "logs, journals and configuration are in %s\n", dir)
		return err
	}
	return os.RemoveAll(dir)
}

type demo struct {
	Options
	dir   string
	began time.Time
	parts []*part
	phase atomic.Value // string
}

// part is one class's share of the demo.
type part struct {
	rig      *rig
	telegram *telegram
	updates  []update
	kills    int
	open     atomic.Int64 // jobs, when last asked
}

func (d *demo) run(ctx context.Context) ([]account, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	secret := rand.Text()
	d.phase.Store("starting")
	reporting, stopReporting := context.WithCancel(ctx)
	defer stopReporting()
	for i, class := range d.Classes {
		updates, err := generate(share(d.Updates, i, len(d.Classes)), d.Seed+uint64(i))
		if err != nil {
			return nil, err
		}
		r := &rig{class: class, dir: filepath.Join(d.dir, class), exe: d.Executable, secret: secret, seed: d.Seed + uint64(i), faults: d.Faults}
		p := &part{rig: r, updates: updates, kills: share(d.Kills, i, len(d.Classes))}
		d.parts = append(d.parts, p)
		if err := r.start(ctx, d.Processes); err != nil {
			return nil, fmt.Errorf("start %s: %w", class, err)
		}
		p.telegram = newTelegram(r.intakes(), secret)
	}
	go d.report(reporting)
	d.phase.Store("delivering")
	if err := d.each(func(p *part) error { return p.work(ctx, d.Seed) }); err != nil {
		return nil, err
	}
	d.phase.Store("settling")
	if err := d.each(func(p *part) error { return p.quiet(ctx) }); err != nil {
		return nil, err
	}
	stopReporting()
	var accounts []account
	for _, p := range d.parts {
		a, err := settle(ctx, p.rig, p.telegram, p.updates)
		if err != nil {
			return nil, fmt.Errorf("account of %s: %w", p.rig.class, err)
		}
		accounts = append(accounts, a)
	}
	return accounts, nil
}

// share splits n over parts without loss.
func share(n, i, parts int) int { return n*(i+1)/parts - n*i/parts }

// each runs do for all parts at the same time.
func (d *demo) each(do func(*part) error) error {
	var all sync.WaitGroup
	failures := make([]error, len(d.parts))
	for i, p := range d.parts {
		all.Go(func() { failures[i] = do(p) })
	}
	all.Wait()
	return errors.Join(failures...)
}

// work delivers and kills at the same time.
func (p *part) work(ctx context.Context, seed uint64) error {
	length := max(spread, time.Duration(len(p.updates))*time.Second/perSecond)
	var delivering sync.WaitGroup
	delivering.Go(func() { p.telegram.deliver(ctx, p.updates, length, seed) })
	draw := prng.New(prng.NewPCG(seed, math.MaxUint64))
	var failure error
	for i := 0; i < p.kills && failure == nil && ctx.Err() == nil; i++ {
		// The last ones fall behind the last delivery, into the settling.
		mean := (length + spread/2) / time.Duration(p.kills)
		select {
		case <-time.After(mean/2 + time.Duration(draw.Int64N(int64(mean)))):
			failure = p.rig.kill(draw.IntN(math.MaxInt32))
		case <-ctx.Done():
		}
	}
	delivering.Wait()
	return failure
}

// quiet returns when the engine has nothing left to do by itself.
func (p *part) quiet(ctx context.Context) error {
	for ctx.Err() == nil {
		open, err := p.rig.open(ctx)
		if err == nil { // else it is being started
			p.open.Store(int64(open))
		}
		if err == nil && open < len(p.updates)/10 {
			// By the metrics it is nearly done: what is left may wait for a person.
			jobs, err := p.rig.jobs(ctx)
			if err != nil {
				return err
			}
			if busy(p.updates, jobs) == 0 {
				return nil
			}
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return fmt.Errorf("%s: %d jobs still open: %w", p.rig.class, p.open.Load(), ctx.Err())
}

// report prints how far the demo is, every third second.
func (d *demo) report(ctx context.Context) {
	tick := time.NewTicker(3 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var acknowledged, requests, open, kills int64
		for _, p := range d.parts {
			if p.telegram != nil {
				acknowledged += p.telegram.acknowledged.Load()
				requests += p.telegram.deliveries.Load()
			}
			open += p.open.Load()
			kills += p.rig.kills.Load()
		}
		line := fmt.Sprintf("%4.0fs  %s: %d of %d updates acknowledged in %d requests, %d of %d SIGKILLs",
			time.Since(d.began).Seconds(), d.phase.Load(), acknowledged, d.Updates, requests, kills, d.Kills)
		if d.phase.Load() == "settling" {
			line += fmt.Sprintf(", %d jobs open", open)
		}
		fmt.Fprintln(d.Out, line)
	}
}

// keep prints what to try, and waits until ctx ends.
func (d *demo) keep(ctx context.Context) {
	fmt.Fprintln(d.Out, "\nStill running; Ctrl-C stops it. The secret for commands and deliveries:")
	fmt.Fprintf(d.Out, "  export DEMO_SECRET=%s\n", d.parts[0].rig.secret)
	for _, p := range d.parts {
		fmt.Fprintf(d.Out, "%s: engine %s, CRM %s\n", p.rig.class, strings.Join(p.rig.intakes(), " "), p.rig.crmURL)
		fmt.Fprintf(d.Out, "  %s job list --config %s\n", d.Executable, p.rig.config())
		fmt.Fprintf(d.Out, "  %s audit verify --crm --config %s\n", d.Executable, p.rig.config())
		fmt.Fprintf(d.Out, "  curl %s/readyz\n  curl %s/oracle/effects\n", p.rig.intakes()[0], p.rig.crmURL)
	}
	<-ctx.Done()
}

func (d *demo) stop() error {
	var failures []error
	for _, p := range d.parts {
		failures = append(failures, p.rig.stop())
	}
	return errors.Join(failures...)
}
