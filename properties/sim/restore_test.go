package sim

import (
	"context"
	"testing"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

// TestOperationIDsOutliveARestore cuts the logs of runs at any place, as a backup
// does, and lets new processes go on from there: they know each operation by the id
// that it had.
func TestOperationIDsOutliveARestore(t *testing.T) {
	restores, claims := 0, 0
	for seed := range uint64(120) {
		p := Draw(Seeded(seed), "")
		w := newWorld(p, &Coverage{}, nil, &stage{})
		w.play()
		var all []eventlog.Recorded
		for r, err := range w.store.ReadAll(context.Background(), eventlog.Start) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, r)
		}
		before := operations(all)
		w.end()
		for _, size := range []int{len(all) / 4, len(all) / 2, len(all) * 3 / 4} {
			restores++
			for stream, id := range operations(restored(p, all[:size])) {
				claims++
				if was, ok := before[stream]; ok && was != id {
					t.Fatalf("seed %d: %s had operation %s, and has %s behind a restore", seed, stream, was, id)
				}
			}
		}
	}
	if restores != 360 || claims < 200 {
		t.Errorf("%d restores and %d claims: this shows too little", restores, claims)
	}
}

// restored is what processes with an empty memory make of a part of a log.
func restored(p Plan, part []eventlog.Recorded) (all []eventlog.Recorded) {
	w := newWorld(p, &Coverage{}, nil, &stage{})
	defer w.end()
	for _, r := range part {
		proposed := eventlog.Proposed{ID: r.ID, Type: r.Type, Time: r.Time, Data: r.Data}
		if _, err := w.store.Append(context.Background(), r.Stream, eventlog.Any, proposed); err != nil {
			panic(err)
		}
		if r.Time.After(w.now) {
			w.now = r.Time
		}
	}
	for range 40 {
		for _, p := range w.processes {
			w.work(p)
		}
		w.pass(lease)
		w.broken = nil // the CRM has forgotten, and the judge has seen only the rest
	}
	for r, err := range w.store.ReadAll(context.Background(), eventlog.Start) {
		must(err)
		all = append(all, r)
	}
	return all
}

// operations are the ids under which jobs are claimed.
func operations(log []eventlog.Recorded) map[string]string {
	ids := map[string]string{}
	for _, r := range log {
		if e, err := job.Decode(r.Type, r.Data); err == nil {
			if c, ok := e.(job.JobClaimed); ok {
				ids[r.Stream] = c.OperationID
			}
		}
	}
	return ids
}
