package projections_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/projections"
)

// TestFilters compares every filter, and pages of it, with a look at each job.
func TestFilters(t *testing.T) {
	dir, run := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		w := randomHistory(rt)
		s := openFor(rt, filepath.Join(dir, fmt.Sprintf("%d.db", run)))
		defer s.Close()
		must(rt, s.CatchUp(t.Context(), w.log, nil))
		all, err := s.Jobs(t.Context(), projections.Filter{Limit: 1000, OldestFirst: true})
		must(rt, err)
		if len(all) == 0 {
			return
		}
		f := randomFilter(rt, rapid.SampledFrom(all).Draw(rt, "like"))
		var want, got []projections.Job
		for _, j := range all {
			if fits(j, f) {
				want = append(want, j)
			}
		}
		if !f.OldestFirst {
			slices.Reverse(want)
		}
		f.Limit = rapid.IntRange(1, 5).Draw(rt, "limit")
		for {
			page, err := s.Jobs(t.Context(), f)
			must(rt, err)
			if got = append(got, page...); len(page) < f.Limit {
				break
			}
			f.After = page[len(page)-1].Number
		}
		if !reflect.DeepEqual(got, want) {
			rt.Fatalf("%+v gives\n  %+v, want\n  %+v", f, got, want)
		}
	})
}

func randomFilter(t *rapid.T, like projections.Job) (f projections.Filter) {
	choose := func(name string) bool { return rapid.IntRange(0, 3).Draw(t, name) == 0 }
	f.OldestFirst = choose("oldest first")
	for _, c := range []struct {
		name string
		set  func()
	}{
		{"phase", func() { f.Phase = like.Phase }},
		{"bot", func() { f.Bot = like.Bot }},
		{"kind", func() { f.Kind = like.Kind }},
		{"chat", func() { f.Chat = like.Chat }},
		{"user", func() { f.User = like.User }},
		{"operation", func() { f.Operation = like.OperationID }},
		{"crm id", func() { f.CRMID = like.CRMID + like.SharedCRMID }},
		{"text", func() {
			f.Text = rapid.SampledFrom([]string{"telegram/7/1", "lead-", like.OperationID, "/8", "no such", "%"}).Draw(t, "part")
		}},
		{"human", func() { f.Human = true }},
		{"stopped", func() { f.Stopped = true }},
		{"since", func() { f.Since = like.ReceivedAt }},
	} {
		if choose(c.name) {
			c.set()
		}
	}
	return f
}

func fits(j projections.Job, f projections.Filter) bool {
	hay := []string{j.Key, j.Stream, j.BusinessKey, j.OperationID, j.CRMID, j.SharedCRMID}
	return (f.Phase == "" || j.Phase == f.Phase) &&
		(f.Bot == 0 || j.Bot == f.Bot) &&
		(f.Kind == "" || j.Kind == f.Kind) &&
		(f.Chat == 0 || j.Chat == f.Chat) &&
		(f.User == 0 || j.User == f.User) &&
		(f.Operation == "" || j.OperationID == f.Operation) &&
		(f.CRMID == "" || j.CRMID == f.CRMID || j.SharedCRMID == f.CRMID) &&
		(f.Text == "" || slices.ContainsFunc(hay, func(s string) bool { return strings.Contains(s, f.Text) })) &&
		(!f.Human || j.Human) &&
		(!f.Stopped || j.Stopped != projections.Stop{}) &&
		(f.Since.IsZero() || !j.ReceivedAt.IsZero() && !j.ReceivedAt.Before(f.Since))
}

// TestFiltersUseTheirIndex: an operator's question must not read a million jobs.
func TestFiltersUseTheirIndex(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "models.db"))
	for index, f := range map[string]projections.Filter{
		"jobs_phase":     {Phase: job.NeedsReconciliation},
		"jobs_chat":      {Chat: -5},
		"jobs_user":      {User: 5},
		"jobs_operation": {Operation: "x"},
		"jobs_crm":       {CRMID: "x"},
		"jobs_shared":    {CRMID: "x"},
		"jobs_human":     {Human: true},
		"jobs_stopped":   {Stopped: true},
	} {
		plan, err := s.Plan(t.Context(), f)
		must(t, err)
		if !strings.Contains(plan, index+" ") && !strings.Contains(plan, index+"\n") {
			t.Errorf("%+v is answered without %s:\n%s", f, index, plan)
		}
	}
}

// TestLargeIDsAreExact in the file and in JSON (T13).
func TestLargeIDsAreExact(t *testing.T) {
	w := scribe{log: memory.New(), now: epoch}
	want := [][]int64{
		{8_123_456_789, 1<<53 + 1, -1_002_147_483_649, 1<<52 - 1},
		{math.MaxInt64, math.MaxInt64, math.MinInt64, math.MaxInt64},
		{1, 0, -1, 1},
	}
	s := openAt(t, filepath.Join(t.TempDir(), "models.db"))
	for _, ids := range want {
		w.finish(t, w.receive(t, messageIn(ids[0], ids[1], ids[2], ids[3], "text")))
	}
	must(t, s.CatchUp(t.Context(), w.log, nil))
	for _, ids := range want {
		found, err := s.Jobs(t.Context(), projections.Filter{Bot: ids[0], Chat: ids[2], User: ids[3]})
		must(t, err)
		if len(found) != 1 {
			t.Fatalf("%v finds %d jobs, want 1", ids, len(found))
		}
		j, err := s.Job(t.Context(), fmt.Sprintf("telegram/%d/%d", ids[0], ids[1]))
		must(t, err)
		if got := []int64{j.Bot, j.UpdateID, j.Chat, j.User}; !slices.Equal(got, ids) || j != found[0] {
			t.Errorf("ids are %v, want %v", got, ids)
		}
		text, err := json.Marshal(j)
		must(t, err)
		members := fmt.Sprintf(`"bot":%d,"update_id":%d,"chat":%d,"user":%d`, ids[0], ids[1], ids[2], ids[3])
		if !strings.Contains(string(text), members) {
			t.Errorf("JSON is %s, want it to have %s", text, members)
		}
	}
}

// TestJobAsJSON: what is unset is left out or zero, times keep their nanoseconds.
func TestJobAsJSON(t *testing.T) {
	w := aLog(t, 1)
	s := openAt(t, filepath.Join(t.TempDir(), "models.db"))
	must(t, s.CatchUp(t.Context(), w.log, nil))
	j, err := s.Job(t.Context(), "telegram/7/0")
	must(t, err)
	text, err := json.Marshal(j)
	must(t, err)
	for _, want := range []string{
		`"number":1`, `"event_key":"telegram/7/0"`, `"phase":"done"`, `"how":"create"`, `"human":false`,
		`"received_at":"2026-07-01T12:00:01.001234566Z"`, `"position":"3/3"`, `"revision":2`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("JSON is %s, want it to have %s", text, want)
		}
	}
	for _, unwanted := range []string{"stopped", "worker", "lease_until", "not_before", "0001-01-01"} {
		if strings.Contains(string(text), unwanted) {
			t.Errorf("JSON is %s, want it without %s", text, unwanted)
		}
	}
	var back projections.Job
	must(t, json.Unmarshal(text, &back))
	if back != j {
		t.Errorf("JSON reads back as %+v, want %+v", back, j)
	}
}

// TestUnknownJobs.
func TestUnknownJobs(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "models.db"))
	for _, key := range []string{"telegram/7/1", "update-7-1"} {
		if _, err := s.Job(t.Context(), key); !errors.Is(err, projections.ErrNoJob) {
			t.Errorf("%s gives %v, want %v", key, err, projections.ErrNoJob)
		}
	}
	if _, err := s.Job(t.Context(), "7/1"); err == nil || errors.Is(err, projections.ErrNoJob) {
		t.Errorf("what is no key gives %v, want that it is none", err)
	}
}

// TestMappingsNameTheLead, also where another job made it.
func TestMappingsNameTheLead(t *testing.T) {
	w := scribe{log: memory.New(), now: epoch}
	made, shared := w.receive(t, message(7, 1, "text")), w.receive(t, message(7, 2, "text"))
	w.receive(t, message(7, 3, "text"))
	w.claim(t, made)
	w.tell(t, made, job.LeadConfirmed{CRMID: "lead-9", How: job.ByUpsert})
	w.tell(t, shared, job.NoEffectNeeded{Reason: "shared", ConfirmedBy: made.key.String(), CRMID: "lead-9"})
	s := openAt(t, filepath.Join(t.TempDir(), "models.db"))
	must(t, s.CatchUp(t.Context(), w.log, nil))
	got, err := s.Mappings(t.Context(), projections.Filter{OldestFirst: true})
	must(t, err)
	want := []projections.Mapping{
		{Number: 1, Key: "telegram/7/1", OperationID: job.OperationID(7, job.CreateLead, "telegram/7/1"), CRMID: "lead-9", How: "upsert"},
		{Number: 2, Key: "telegram/7/2", CRMID: "lead-9", ConfirmedBy: "telegram/7/1"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("mappings are\n  %+v, want\n  %+v", got, want)
	}
}

// TestDuplicatesAndIncidents.
func TestDuplicatesAndIncidents(t *testing.T) {
	w := scribe{log: memory.New(), now: epoch}
	one, two := w.receive(t, message(7, 1, "text")), w.receive(t, message(7, 2, "text"))
	w.tell(t, two, two.state.Repeat()...)
	first := w.now
	s := openAt(t, filepath.Join(t.TempDir(), "models.db"))
	must(t, s.CatchUp(t.Context(), w.log, nil))
	w.tell(t, two, two.state.Repeat()...)
	last := w.now
	w.tell(t, one, job.KeyConflicted{Fingerprint: "f", StoredAs: "telegram/7/1/0123456789abcdef"})
	conflictAt := w.now
	w.finish(t, one)
	w.tell(t, one, job.ReceiptConflicted{CRMID: "lead-b", Confirmed: "lead-a"})
	must(t, s.CatchUp(t.Context(), w.log, nil))

	duplicates, err := s.Duplicates(t.Context(), projections.Filter{})
	must(t, err)
	want := []projections.Duplicate{{Number: 2, Key: "telegram/7/2", Count: 2, FirstAt: first, LastAt: last, Reason: "same event key and fingerprint"}}
	if !reflect.DeepEqual(duplicates, want) {
		t.Errorf("duplicates are %+v, want %+v", duplicates, want)
	}
	incidents, err := s.Incidents(t.Context(), projections.Filter{})
	must(t, err)
	wanted := []projections.Incident{
		{ID: 2, Number: 1, Key: "telegram/7/1", Kind: projections.ReceiptConflict, At: w.now, Position: "8/8", CRMID: "lead-b", Confirmed: "lead-a"},
		{ID: 1, Number: 1, Key: "telegram/7/1", Kind: projections.KeyConflict, At: conflictAt, Position: "5/5", Fingerprint: "f", StoredAs: "telegram/7/1/0123456789abcdef"},
	}
	if !reflect.DeepEqual(incidents, wanted) {
		t.Errorf("incidents are\n  %+v, want\n  %+v", incidents, wanted)
	}
	later, err := s.Incidents(t.Context(), projections.Filter{Since: conflictAt.Add(1), Chat: one.update.Chat})
	must(t, err)
	page, err := s.Incidents(t.Context(), projections.Filter{After: 2})
	must(t, err)
	if !reflect.DeepEqual(later, wanted[:1]) || !reflect.DeepEqual(page, wanted[1:]) {
		t.Errorf("later ones are %+v, the next page is %+v", later, page)
	}
	counts, err := s.Counts(t.Context())
	must(t, err)
	if counts.Repeats != 2 || counts.Incidents != 2 || counts.Jobs != 2 || counts.Oldest[job.Pending] != two.state.ReceivedAt {
		t.Errorf("counts are %+v", counts)
	}
}

// TestTimingsAreExact to the nanosecond, and survive times that are absurd.
func TestTimingsAreExact(t *testing.T) {
	w := scribe{log: memory.New(), now: epoch.Add(-1234567 * time.Nanosecond)} // the first event is at .999999999
	var claims []time.Duration
	for i := range 10 {
		s := w.receive(t, message(7, int64(i), "text"))
		w.now = w.now.Add(time.Duration(i)*time.Second + 765432*time.Nanosecond) // 2 ms with scribe's own step
		w.claim(t, s)
		claims = append(claims, s.state.LastEventAt.Sub(s.state.ReceivedAt))
		w.tell(t, s, job.LeadConfirmed{CRMID: "lead", How: job.ByCreate})
	}
	s := openAt(t, filepath.Join(t.TempDir(), "models.db"))
	must(t, s.CatchUp(t.Context(), w.log, nil))
	got, err := s.Timings(t.Context(), time.Time{})
	must(t, err)
	want := projections.Quantiles{Count: 10, P50: claims[4], P90: claims[8], P99: claims[9], Max: claims[9]}
	if got.ToClaim != want {
		t.Errorf("to the claim %+v, want %+v", got.ToClaim, want)
	}
	if step := 1234567 * time.Nanosecond; got.ToFinish.Max != claims[9]+step || got.ToFinish.Count != 10 {
		t.Errorf("to the end %+v, want the longest %s", got.ToFinish, claims[9]+step)
	}
	recent, err := s.Timings(t.Context(), w.jobs[8].state.ReceivedAt)
	must(t, err)
	if recent.ToClaim.Count != 2 || recent.ToClaim.P50 != claims[8] {
		t.Errorf("of the last two jobs %+v, want %s first", recent.ToClaim, claims[8])
	}

	late := w.receive(t, message(7, 99, "text"))
	w.now = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	w.claim(t, late)
	must(t, s.CatchUp(t.Context(), w.log, nil))
	absurd, err := s.Timings(t.Context(), time.Time{})
	must(t, err)
	if absurd.ToClaim.Max != math.MaxInt64 || absurd.ToClaim.Count != 11 {
		t.Errorf("with a claim in the year 9999 %+v, want the longest duration there is", absurd.ToClaim)
	}
}
