package telegram_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/ingress/telegram"
)

// clock stands still until it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	c.pass(d)
	return ctx.Err()
}

type randomIDs struct{}

func (randomIDs) New() (id eventlog.EventID) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}

// connector is a CRM that counts the leads per operation.
type connector struct {
	create func(context.Context, crm.Operation) (crm.Receipt, error) // nil: succeed

	mu      sync.Mutex
	created map[string]int
}

func (c *connector) Describe() crm.Description {
	return crm.Description{Name: "fake", Class: crm.Lookup, CanFind: true, Settle: time.Second}
}

func (c *connector) Create(ctx context.Context, op crm.Operation) (crm.Receipt, error) {
	c.mu.Lock()
	if c.created == nil {
		c.created = map[string]int{}
	}
	c.created[op.ID]++
	c.mu.Unlock()
	if c.create != nil {
		return c.create(ctx, op)
	}
	return crm.Receipt{CRMID: "lead-" + op.ID}, nil
}

func (c *connector) Find(context.Context, string, time.Time) ([]crm.Receipt, error) { return nil, nil }

// wantLeads checks that there are so many operations, with one request each.
func (c *connector) wantLeads(t *testing.T, want int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, n := range c.created {
		if n != 1 {
			t.Errorf("operation %s was requested %d times", id, n)
		}
	}
	if len(c.created) != want {
		t.Errorf("%d operations, want %d", len(c.created), want)
	}
}

// hookedLog is a log whose appends can be held up and made to fail.
type hookedLog struct {
	eventlog.Log
	mu     sync.Mutex
	before func(ctx context.Context, stream string) error // an error is the outcome
	after  func(stream string)
}

func (l *hookedLog) set(before func(context.Context, string) error, after func(string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before, l.after = before, after
}

func (l *hookedLog) Append(ctx context.Context, stream string, expected eventlog.Expected, events ...eventlog.Proposed) (eventlog.Appended, error) {
	l.mu.Lock()
	before, after := l.before, l.after
	l.mu.Unlock()
	if before != nil {
		if err := before(ctx, stream); err != nil {
			return eventlog.Appended{}, err
		}
	}
	appended, err := l.Log.Append(ctx, stream, expected, events...)
	if after != nil {
		after(stream)
	}
	return appended, err
}

// results collects what the handler reports.
type results struct {
	mu  sync.Mutex
	all []telegram.Delivery
}

func (r *results) add(d telegram.Delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, d)
}

func (r *results) names() (names []telegram.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.all {
		names = append(names, d.Result)
	}
	return names
}

func (r *results) count(result telegram.Result) (n int) {
	for _, name := range r.names() {
		if name == result {
			n++
		}
	}
	return n
}

// lockedBuffer is where the log lines go.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func (b *lockedBuffer) mustNotHold(t *testing.T, words []string) {
	t.Helper()
	for line := range strings.Lines(b.String()) {
		for _, word := range words {
			if strings.Contains(strings.ToLower(line), strings.ToLower(word)) {
				t.Errorf("a log line holds %q: %s", word, line)
			}
		}
	}
}
