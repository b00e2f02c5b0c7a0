package laws

import (
	"context"
	"encoding/binary"
	"iter"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/projections"
)

// entry is an event on its way into a log.
type entry struct {
	stream string
	recorded
}

// logOf is a log with the entries in their order.
func logOf(t testing.TB, entries []entry) eventlog.Log {
	t.Helper()
	log := memory.New()
	for i, e := range entries {
		name, data, err := job.Encode(e.event)
		if err != nil {
			t.Fatal(err)
		}
		var id eventlog.EventID
		binary.BigEndian.PutUint64(id[8:], uint64(i+1))
		if _, err := log.Append(t.Context(), e.stream, eventlog.Any, eventlog.Proposed{ID: id, Type: name, Time: e.at, Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	return log
}

// cutLog shows the first events of a log only, and whoever asks for those behind
// a position gets them from an earlier one on: delivered again, as a
// subscription may that goes on after a failure.
type cutLog struct {
	eventlog.Log
	shown, again int
}

func (l cutLog) ReadAll(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		var held []eventlog.Recorded // the last few up to after
		n := 0
		for r, err := range l.Log.ReadAll(ctx, eventlog.Start) {
			if n++; n > l.shown {
				return
			}
			if err == nil && r.Position.Compare(after) <= 0 {
				held = append(held, r)
				continue
			}
			for _, r := range held[max(0, len(held)-l.again):] {
				if !yield(r, nil) {
					return
				}
			}
			if held = nil; !yield(r, err) {
				return
			}
		}
	}
}

// view is everything that the read models answer about a log, without what
// numbers the log's order.
type view struct {
	jobs       []projections.Job
	mappings   []projections.Mapping
	duplicates []projections.Duplicate
	incidents  []projections.Incident
	counts     projections.Counts
	timings    projections.Timings
}

func viewOf(t testing.TB, s *projections.Store) view {
	t.Helper()
	all := projections.Filter{OldestFirst: true, Limit: 1000}
	var v view
	var errs [6]error
	v.jobs, errs[0] = s.Jobs(t.Context(), all)
	v.mappings, errs[1] = s.Mappings(t.Context(), all)
	v.duplicates, errs[2] = s.Duplicates(t.Context(), all)
	v.incidents, errs[3] = s.Incidents(t.Context(), all)
	v.counts, errs[4] = s.Counts(t.Context())
	v.timings, errs[5] = s.Timings(t.Context(), time.Time{})
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return v
}

// orderless is the view without numbers and positions, which say in which order
// the log has the streams.
func (v view) orderless() view {
	w := view{slices.Clone(v.jobs), slices.Clone(v.mappings), slices.Clone(v.duplicates), slices.Clone(v.incidents), v.counts, v.timings}
	w.counts.Oldest = nil
	for i := range w.jobs {
		w.jobs[i].Number, w.jobs[i].Position = 0, ""
	}
	for i := range w.mappings {
		w.mappings[i].Number = 0
	}
	for i := range w.duplicates {
		w.duplicates[i].Number = 0
	}
	for i := range w.incidents {
		w.incidents[i].Number, w.incidents[i].Position, w.incidents[i].ID = 0, "", 0
	}
	slices.SortStableFunc(w.jobs, func(a, b projections.Job) int { return strings.Compare(a.Key, b.Key) })
	slices.SortStableFunc(w.mappings, func(a, b projections.Mapping) int { return strings.Compare(a.Key, b.Key) })
	slices.SortStableFunc(w.duplicates, func(a, b projections.Duplicate) int { return strings.Compare(a.Key, b.Key) })
	slices.SortStableFunc(w.incidents, func(a, b projections.Incident) int { return strings.Compare(a.Key, b.Key) })
	return w
}

func openModels(t testing.TB, path string) *projections.Store {
	t.Helper()
	s, err := projections.Open(t.Context(), path, projections.Options{
		Reset: func(reason string) { t.Errorf("the read models were wiped: %s", reason) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// rebuilt is what the models say of a log from nothing.
func rebuilt(t testing.TB, s *projections.Store, log eventlog.Log) view {
	t.Helper()
	if err := s.Rebuild(t.Context(), log, nil); err != nil {
		t.Fatal(err)
	}
	return viewOf(t, s)
}

// The streams whose orders are tried: a job that is given up, comes back and ends
// with two leads, and one that a person has to look at.
func twoStreams() [2][]entry {
	one, two := message(7, 1, "one"), message(8, 2, "two")
	at := func(second int) time.Time { return epoch.Add(time.Duration(second) * time.Second) }
	claim := func(worker string, second int) job.JobClaimed {
		return job.JobClaimed{Worker: worker, Attempt: 1, Action: job.CreateLead, BusinessKey: "b", OperationID: "o-" + worker, LeaseUntil: at(second + 60), Deadline: at(second + 20)}
	}
	on := func(u job.Update, events ...recorded) []entry {
		list := []entry{{u.Key().Stream(), recorded{job.Receive(u, u.Key()), at(0)}}}
		for _, r := range events {
			list = append(list, entry{u.Key().Stream(), r})
		}
		return list
	}
	return [2][]entry{
		on(one, recorded{job.DeliveryRepeated{Reason: "again"}, at(2)}, recorded{claim("v", 3), at(3)},
			recorded{job.LeadConfirmed{CRMID: "1", How: job.ByCreate}, at(5)}, recorded{job.ReceiptConflicted{CRMID: "2", Confirmed: "1"}, at(9)}),
		on(two, recorded{claim("w", 1), at(1)}, recorded{job.ReconciliationNeeded{Reason: "cut", Human: true}, at(4)},
			recorded{job.KeyConflicted{Fingerprint: "f", StoredAs: "telegram/8/2/0123456789abcdef"}, at(8)}),
	}
}

// interleavings are all orders in which a log can have two streams.
func interleavings(a, b []entry) [][]entry {
	if len(a) == 0 || len(b) == 0 {
		return [][]entry{append(slices.Clone(a), b...)}
	}
	var all [][]entry
	for _, rest := range interleavings(a[1:], b) {
		all = append(all, append([]entry{a[0]}, rest...))
	}
	for _, rest := range interleavings(a, b[1:]) {
		all = append(all, append([]entry{b[0]}, rest...))
	}
	return all
}

// TestEveryOrderOfTheStreamsIsOneLog: how the streams lie between each other
// changes the numbers of the rows, and nothing else.
func TestEveryOrderOfTheStreamsIsOneLog(t *testing.T) {
	t.Parallel()
	s := openModels(t, filepath.Join(t.TempDir(), "models.db"))
	defer s.Close()
	streams := twoStreams()
	var want view
	orders := interleavings(streams[0], streams[1])
	for i, entries := range orders {
		got := rebuilt(t, s, logOf(t, entries))
		first := got.jobs[0].Key
		if stream := entries[0].stream; !strings.HasSuffix(stream, strings.ReplaceAll(strings.TrimPrefix(first, "telegram/"), "/", "-")) {
			t.Fatalf("order %d begins with %s, and the oldest row is of %s", i, stream, first)
		}
		if i == 0 {
			want = got.orderless()
		}
		if got := got.orderless(); !reflect.DeepEqual(got, want) {
			t.Fatalf("order %d of the streams gives\n%+v\nand another one\n%+v", i, got, want)
		}
	}
	if len(orders) != 126 || len(want.jobs) != 2 || len(want.incidents) != 2 || len(want.duplicates) != 1 {
		t.Errorf("%d orders were tried, and the log has %d jobs, %d incidents and %d duplicates", len(orders), len(want.jobs), len(want.incidents), len(want.duplicates))
	}
}

// TestEverySplitIsOneLog stops behind every event of a log, goes on with another
// process, and is handed again what it had: some of it, all of it, or nothing.
func TestEverySplitIsOneLog(t *testing.T) {
	t.Parallel()
	streams := twoStreams()
	orders := interleavings(streams[0], streams[1])
	entries := orders[len(orders)*2/5]
	log := logOf(t, entries)
	dir := t.TempDir()
	whole := openModels(t, filepath.Join(dir, "whole.db"))
	defer whole.Close()
	want := rebuilt(t, whole, log)
	splits := 0
	for stop := range len(entries) + 1 {
		for _, again := range []int{0, 2, len(entries)} {
			splits++
			path := filepath.Join(dir, "split.db")
			s := openModels(t, filepath.Join(dir, "split.db"))
			if err := s.Rebuild(t.Context(), cutLog{log, stop, 0}, nil); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = openModels(t, path)
			if err := s.CatchUp(t.Context(), cutLog{log, len(entries), again}, nil); err != nil {
				t.Fatal(err)
			}
			got := viewOf(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("stopped behind %d events and handed %d of them again, the models say\n%+v\nand of the whole log\n%+v", stop, again, got, want)
			}
		}
	}
	if splits != 3*(len(entries)+1) || splits < 30 {
		t.Errorf("%d splits were tried", splits)
	}
}

// TestAnyOrderOfLivedStreamsIsOneLog, for jobs that lived, and each row says what
// a plain fold of its stream says.
func TestAnyOrderOfLivedStreamsIsOneLog(t *testing.T) {
	t.Parallel()
	s := openModels(t, filepath.Join(t.TempDir(), "models.db"))
	defer s.Close()
	logs, rows, moved := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		if logs++; logs > 25 {
			return // each is two logs and two rebuilds
		}
		streams, states := [][]entry{}, map[string]job.State{}
		for id := range rapid.Int64Range(2, 4).Draw(rt, "jobs") {
			l := newLife(rt, id, rapid.IntRange(0, 12).Draw(rt, "steps"))
			var list []entry
			for _, r := range l.events {
				list = append(list, entry{l.key.Stream(), r})
			}
			streams, states[l.key.String()] = append(streams, list), l.state
		}
		one, two := shuffled(rt, streams), shuffled(rt, streams)
		if !reflect.DeepEqual(one, two) {
			moved++
		}
		got, other := rebuilt(t, s, logOf(t, one)), rebuilt(t, s, logOf(t, two))
		if !reflect.DeepEqual(got.orderless(), other.orderless()) {
			rt.Fatalf("one order of the streams gives\n%+v\nand another one\n%+v", got.orderless(), other.orderless())
		}
		for _, j := range got.jobs {
			rows++
			w := states[j.Key]
			if j.Phase != w.Phase || j.CRMID != w.CRMID || j.Attempts != w.Attempts || j.Revision != w.Revision() || !j.NotBefore.Equal(w.NotBefore) ||
				j.Human != w.Human || j.Ambiguous != w.Ambiguous || j.Repeats != w.Repeats || j.Requeues != w.Requeues || j.LastError != w.LastError {
				rt.Fatalf("the row is\n%+v\nand the stream folds to\n%+v", j, w)
			}
		}
		if len(got.jobs) != len(states) || got.counts.Jobs != int64(len(states)) {
			rt.Fatalf("%d rows and a count of %d for %d streams", len(got.jobs), got.counts.Jobs, len(states))
		}
	})
	if logs < 20 || rows < 40 || 2*moved < min(logs, 25) {
		t.Errorf("%d logs with %d rows were compared, %d of them in two orders", logs, rows, moved)
	}
}

// shuffled is one order of the streams.
func shuffled(t *rapid.T, streams [][]entry) (all []entry) {
	rest := slices.Clone(streams)
	for len(rest) > 0 {
		i := rapid.IntRange(0, len(rest)-1).Draw(t, "next of")
		all = append(all, rest[i][0])
		if rest[i] = rest[i][1:]; len(rest[i]) == 0 {
			rest = slices.Delete(rest, i, i+1)
		}
	}
	return all
}
