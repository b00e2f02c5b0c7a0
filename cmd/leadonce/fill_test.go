package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/sqlite"
	"github.com/leadonce/leadonce/engine/job"
)

// fill LOG STORY appends the story's events to the log. A line of it is an event
// key, a verb and its arguments; the verbs are in events. An hour passes
// between two lines, from 2026-01-02T03:00:00Z on.
func fill() {
	if err := tell(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "fill:", err)
		os.Exit(1)
	}
}

func tell(ctx context.Context, path, story string) error {
	text, err := os.Open(story)
	if err != nil {
		return err
	}
	defer text.Close()
	log, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return err
	}
	defer log.Close()
	n := narrator{log: log, now: time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC), jobs: map[string]job.State{}}
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := n.line(ctx, line); err != nil {
			return fmt.Errorf("%q: %w", line, err)
		}
		n.now = n.now.Add(time.Hour)
	}
	return lines.Err()
}

type narrator struct {
	log  eventlog.Log
	now  time.Time
	jobs map[string]job.State
}

func (n *narrator) line(ctx context.Context, line string) error {
	name, rest, _ := strings.Cut(line, " ")
	verb, rest, _ := strings.Cut(rest, " ")
	key, err := job.ParseKey(name)
	if err != nil {
		return err
	}
	if verb == "raw" { // raw TYPE DATA: whatever the domain says
		kind, data, _ := strings.Cut(rest, " ")
		return n.write(ctx, key, kind, []byte(data))
	}
	event, err := n.event(n.jobs[name], key, verb, rest)
	if err != nil {
		return err
	}
	if err := job.Allowed(n.jobs[name].Now(), event); err != nil && verb != "illegal" {
		return err
	}
	kind, data, err := job.Encode(event)
	if err != nil {
		return err
	}
	n.jobs[name] = n.jobs[name].Evolve(event, n.now)
	return n.write(ctx, key, kind, data)
}

func (n *narrator) write(ctx context.Context, key job.Key, kind string, data []byte) error {
	_, err := n.log.Append(ctx, key.Stream(), eventlog.Any,
		eventlog.Proposed{ID: randomIDs{}.New(), Type: kind, Time: n.now, Data: data})
	return err
}

// event is what a verb says.
func (n *narrator) event(s job.State, key job.Key, verb, rest string) (job.Event, error) {
	switch verb {
	case "received": // the rest of the update behind its id
		u, err := job.ParseUpdate(key.Bot, fmt.Appendf(nil, `{"update_id":%d,%s}`, key.Update, rest))
		return job.Receive(u, key), err
	case "claimed":
		plan := job.DefaultPlan(s.Key, s.AsUpdate())
		return s.ClaimBy("host-1", plan, "", n.now, defaultConfig().policy()), nil
	case "human":
		return job.ReconciliationNeeded{Reason: rest, Human: true}, nil
	case "lookup":
		return job.ReconciliationNeeded{Reason: rest, NotBefore: n.now}, nil
	case "unknown":
		return job.OutcomeUnknown{Reason: rest, NotBefore: n.now}, nil
	case "confirmed", "illegal": // a CRM id
		return job.LeadConfirmed{CRMID: rest, How: job.ByCreate}, nil
	case "contradicted":
		return job.ReceiptConflicted{CRMID: rest, Confirmed: s.CRMID}, nil
	case "refused":
		return job.JobDeadLettered{Reason: "refused: " + rest}, nil
	case "nothing":
		return job.NoEffectNeeded{Reason: rest}, nil
	case "repeated":
		return job.DeliveryRepeated{Reason: "same event key and fingerprint"}, nil
	case "event": // TYPE DATA of a known type
		kind, data, _ := strings.Cut(rest, " ")
		if !json.Valid([]byte(data)) {
			return nil, fmt.Errorf("no JSON: %s", data)
		}
		return job.Decode(kind, []byte(data))
	default:
		return nil, fmt.Errorf("unknown verb %q", verb)
	}
}
