package job

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestOutcomeOfEveryEvent(t *testing.T) {
	doubted := epoch.Add(time.Minute)
	for _, c := range []struct {
		event Event
		want  ReplyOutcome // "": none
	}{
		{LeadConfirmed{CRMID: "1", How: ByCreate}, LeadMade},
		{LeadConfirmed{CRMID: "1", How: ByOperator, By: "ann"}, LeadMade},
		{JobDeadLettered{Reason: "refused"}, GivenUp},
		{JobDeadLettered{Reason: "discarded: spam", By: "ann"}, ""},
		{ReconciliationNeeded{Reason: "time-out", Human: true}, LeftToHuman},
		{ReconciliationNeeded{Reason: "time-out", NotBefore: epoch}, ""},
		{ReconciliationNeeded{Reason: "restored", Human: true, DoubtedUntil: doubted}, ""},
		{NoEffectNeeded{Reason: "no rule"}, NothingAsked},
		{NoEffectNeeded{Reason: "another", ConfirmedBy: "telegram/1/2"}, MadeElsewhere},
	} {
		got, ok := OutcomeOf(c.event)
		if ok != (c.want != "") || ok && got != c.want {
			t.Errorf("%#v tells of %q, %t; want %q", c.event, got, ok, c.want)
		}
	}
	if all := ReplyOutcomes(); !slices.Equal(all, []ReplyOutcome{"done", "dead_letter", "needs_reconciliation", "shared", "no_effect"}) {
		t.Errorf("the outcomes are %v", all)
	}
	told := map[ReplyOutcome]bool{}
	for _, e := range append(jobEvents(t), OperationReserved{}, ReplyClaimed{}, ReplySent{}, ReplyRefused{}, ReplyUnknown{}, PendingUpdatesDropped{}) {
		if o, ok := OutcomeOf(e); ok {
			told[o] = true
		}
	}
	if len(told) != 3 { // ReconciliationNeeded without content is for a lookup
		t.Errorf("events without content tell of %v", told)
	}
}

func TestWhoCanBeReplied(t *testing.T) {
	for _, c := range []struct {
		kind string
		chat int64
		want bool
	}{
		{"message", 5, true}, {"message", -1002000000001, true}, {"callback_query", 5, true}, {"message", 0, false}, {"callback_query", 0, false},
		{"edited_message", 5, false}, {"channel_post", -5, false}, {"message_reaction", 5, false}, {"my_chat_member", 5, false},
		{"business_message", 5, false}, {"chat_join_request", 5, false}, {NoKind, 5, false}, {OddKind, 5, false},
	} {
		if got := CanBeReplied(State{Kind: c.kind, Chat: c.chat}); got != c.want {
			t.Errorf("%s of chat %d: %t, want %t", c.kind, c.chat, got, c.want)
		}
	}
}

// TestAReplyIsClaimedOnceAndEndsOnce: of all sequences of four events, those that are
// allowed are a claim, and a claim with one ending.
func TestAReplyIsClaimedOnceAndEndsOnce(t *testing.T) {
	events := []Event{ReplyClaimed{Worker: "w", Outcome: LeadMade}, ReplySent{MessageID: 7}, ReplyRefused{Reason: "r"}, ReplyUnknown{Reason: "u"}, LeadConfirmed{}}
	var allowed []string
	var walk func(r Reply, names []string)
	walk = func(r Reply, names []string) {
		if len(names) == 4 {
			return
		}
		for _, e := range events {
			if err := r.Allows(e); err != nil {
				want := e.Name() + " is not allowed on a reply that is " + string(r.Phase)
				if r.Phase == NoReply {
					want = e.Name() + " is not allowed before a claim"
				}
				if e == (LeadConfirmed{}) {
					want = "LeadConfirmed is no event of a reply"
				}
				if err.Error() != want {
					t.Errorf("the error is %q, want %q", err, want)
				}
				continue
			}
			now := append(slices.Clone(names), e.Name())
			allowed = append(allowed, strings.Join(now, " "))
			walk(r.Evolve(e, epoch), now)
		}
	}
	walk(Reply{}, nil)
	want := []string{"ReplyClaimed", "ReplyClaimed ReplySent", "ReplyClaimed ReplyRefused", "ReplyClaimed ReplyUnknown"}
	if !slices.Equal(allowed, want) {
		t.Errorf("allowed are %q, want %q", allowed, want)
	}
}

func TestAReplyFolds(t *testing.T) {
	claim := ReplyClaimed{Key: Key{Bot: 1, Update: 2}, Worker: "w", Outcome: GivenUp, Until: epoch.Add(time.Hour)}
	r := Reply{}.Evolve(claim, epoch)
	if r.Phase != ReplyIsClaimed || r.Claim != claim || r.ClaimedAt != epoch {
		t.Errorf("claimed: %+v", r)
	}
	for _, c := range []struct {
		event Event
		phase ReplyPhase
		id    int64
		why   string
	}{{ReplySent{MessageID: 7}, ReplyIsSent, 7, ""}, {ReplyRefused{Reason: "blocked"}, ReplyIsRefused, 0, "blocked"}, {ReplyUnknown{Reason: "cut"}, ReplyIsUnknown, 0, "cut"}} {
		got := r.Evolve(c.event, epoch.Add(time.Second))
		if got.Phase != c.phase || got.MessageID != c.id || got.Reason != c.why || got.Claim != claim || got.EndedAt != epoch.Add(time.Second) {
			t.Errorf("%#v: %+v", c.event, got)
		}
	}
}

func TestNamesOfReplyAndBotStreams(t *testing.T) {
	k := Key{Bot: 7, Update: 42, Variant: "0123456789abcdef"}
	if got := k.ReplyStream() + " " + (Key{Bot: 7, Update: 42}).ReplyStream() + " " + BotStream(7); got != "reply-7-42-0123456789abcdef reply-7-42 bot-7" {
		t.Errorf("the streams are %s", got)
	}
	if of := JobStreamsOf(7); !strings.HasPrefix(k.Stream(), of) || strings.HasPrefix(Key{Bot: 70, Update: 1}.Stream(), of) {
		t.Errorf("the streams of bot 7 begin with %s", of)
	}
}

// TestOnlyTheStandingOutcomeIsTold, and that one in spite of notes behind it.
func TestOnlyTheStandingOutcomeIsTold(t *testing.T) {
	received := UpdateReceived{Key: Key{Bot: 1, Update: 2}, Kind: "message", Chat: 5, Update: "{}"}
	claim := JobClaimed{Worker: "w"}
	waits := ReconciliationNeeded{Reason: "time-out", Human: true}
	for name, c := range map[string]struct {
		events []Event // behind received
		want   string  // outcome@revision; "" when nothing is told
	}{
		"nothing yet":            {nil, ""},
		"under way":              {[]Event{claim}, ""},
		"done":                   {[]Event{claim, LeadConfirmed{CRMID: "1"}}, "done@2"},
		"done, delivered again":  {[]Event{claim, LeadConfirmed{CRMID: "1"}, DeliveryRepeated{}, ReceiptConflicted{}}, "done@2"},
		"looked up":              {[]Event{claim, ReconciliationNeeded{NotBefore: epoch}}, ""},
		"waits, then done":       {[]Event{claim, waits, LeadConfirmed{CRMID: "1", By: "ann"}}, "done@3"},
		"waits":                  {[]Event{claim, waits, KeyConflicted{}}, "needs_reconciliation@2"},
		"waits, then absent":     {[]Event{claim, waits, LeadAbsent{How: ByOperator}}, ""},
		"given up":               {[]Event{claim, JobDeadLettered{}}, "dead_letter@2"},
		"given up, then again":   {[]Event{claim, JobDeadLettered{}, JobRequeued{}}, ""},
		"given up by a person":   {[]Event{claim, waits, JobDeadLettered{By: "ann"}}, ""},
		"nothing asked":          {[]Event{NoEffectNeeded{}}, "no_effect@1"},
		"another's":              {[]Event{NoEffectNeeded{ConfirmedBy: "telegram/1/1"}}, "shared@1"},
		"restored in between":    {[]Event{claim, ReconciliationNeeded{DoubtedUntil: epoch}, LeadConfirmed{CRMID: "1"}}, ""},
		"put to a person's desk": {[]Event{claim, ReconciliationNeeded{NotBefore: epoch}, waits}, "needs_reconciliation@3"},
	} {
		told := Telling{}.Evolve(received, epoch)
		for _, e := range c.events {
			told = told.Evolve(e, epoch)
		}
		got := ""
		for revision := range uint64(8) {
			if told.Tells(revision) {
				got += fmt.Sprintf("%s@%d", told.Outcome, revision)
			}
		}
		if got != c.want {
			t.Errorf("%s: told is %q, want %q", name, got, c.want)
		}
		if told.LastEventAt != epoch || told.EventCount != uint64(len(c.events)+1) {
			t.Errorf("%s: the job is not folded: %+v", name, told.State)
		}
		if told.State.Chat = 0; told.Tells(told.At) {
			t.Errorf("%s: it is told to nobody", name)
		}
	}
}
