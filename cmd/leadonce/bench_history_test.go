package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/sqlite"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/ingress/telegram/telegramtest"
)

// historian writes the events of finished jobs, as fast as the log takes them.
type historian struct {
	log    *sqlite.Log
	policy job.Policy
	body   []byte // of an update
	id     int    // where its update_id is
	began  time.Time
}

// historians keep so many appends waiting that each sync has a full batch.
const historians = 1000

// fillLog adds finished jobs with the update_ids from first on, a few milliseconds apart
// up to now.
func fillLog(b *testing.B, path string, first int64, jobs int) {
	b.Helper()
	log, err := sqlite.Open(b.Context(), path, sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	const apart = 2 * time.Millisecond
	s := &historian{log: log, policy: defaultConfig().policy(), began: time.Now().Add(-time.Duration(jobs) * apart)}
	request, id := telegramtest.Delivery(benchBot, benchSecret)
	for s.id = id; request[s.id] != '{'; s.id-- {
	}
	s.body, s.id = request[s.id:], id-s.id
	var next atomic.Int64
	var failure atomic.Pointer[error]
	var all sync.WaitGroup
	for range historians {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(jobs) && failure.Load() == nil; i = next.Add(1) - 1 {
				if err := s.job(b.Context(), first+i, s.began.Add(time.Duration(i)*apart)); err != nil {
					failure.Store(&err)
				}
			}
		})
	}
	all.Wait()
	if err := log.Close(); err != nil {
		b.Fatal(err)
	}
	if err := failure.Load(); err != nil {
		b.Fatal(*err)
	}
}

// job appends the whole life of one job.
func (s *historian) job(ctx context.Context, id int64, at time.Time) error {
	body := append([]byte(nil), s.body...)
	copy(body[s.id:], strconv.FormatInt(id, 10))
	sum := sha256.Sum256(body)
	u := job.Update{Bot: benchBot, ID: id, Kind: "message", Chat: 5812345678, User: 5812345678, Fingerprint: hex.EncodeToString(sum[:]), Raw: body}
	key := u.Key()
	received := job.Receive(u, key)
	claimed := job.State{}.Evolve(received, at).ClaimBy("worker", job.Plan{Effect: true, Action: job.CreateLead, BusinessKey: key.String()}, "", at, s.policy)
	var proposed []eventlog.Proposed
	for i, e := range []job.Event{received, claimed, job.LeadConfirmed{CRMID: fmt.Sprintf("lead-%d", id), How: job.ByCreate}} {
		name, data, err := job.Encode(e)
		if err != nil {
			return err
		}
		proposed = append(proposed, eventlog.Proposed{ID: randomIDs{}.New(), Type: name, Time: at.Add(time.Duration(i) * time.Millisecond), Data: data})
	}
	_, err := s.log.Append(ctx, key.Stream(), eventlog.NoStream, proposed...)
	return err
}
