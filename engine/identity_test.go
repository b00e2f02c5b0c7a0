package engine_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/job"
)

// planByChat makes one lead of everything that is said in a chat.
func planByChat(key job.Key, u job.Update) job.Plan {
	if m, migrates := u.Migration(); migrates {
		return job.Plan{Reason: fmt.Sprintf("%d became %d", m.From, m.To)}
	}
	return job.Plan{Effect: true, Action: job.CreateLead, BusinessKey: "chat/" + strconv.FormatInt(u.Origin, 10), Fields: map[string]string{"source": "telegram"}}
}

func inChat(id int, chat int64, member string) job.Update {
	return parse(fmt.Sprintf(`{"update_id":%d,"message":{"message_id":%d,"date":%d,"from":{"id":5},"chat":{"id":%d},%s}}`, id, id, 1_700_000_000+id, chat, member))
}

// groupBecomesSupergroup are its service messages.
func groupBecomesSupergroup(id int) (inGroup, inSupergroup job.Update) {
	return inChat(id, -5, `"migrate_to_chat_id":-1001`), inChat(id+1, -1001, `"migrate_from_chat_id":-5`)
}

func TestT45_AGroupBecomesASupergroup(t *testing.T) {
	there, back := groupBecomesSupergroup(10)
	for name, service := range map[string][]job.Update{
		"both": {there, back}, "the other way round": {back, there}, "the group's alone": {there},
		"the supergroup's alone": {back}, "one twice": {back, back},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(crm.UniqueCreate)
			w.plan = planByChat
			first := w.accept(t, inChat(1, -5, `"text":"in the group"`))
			for _, u := range service {
				w.accept(t, u)
			}
			// Workers may come to the message before they come to the service messages.
			second, e := w.accept(t, inChat(20, -1001, `"text":"in the supergroup"`)), w.engine("a", 0)
			w.advance(t, e, second)
			w.run(t, e)
			wantPhase(t, w, first, job.Done)
			wantPhase(t, w, second, job.Done)
			if effects := w.crm.effects(job.OperationID(bot, job.CreateLead, "chat/-5")); len(effects) != 1 || len(w.crm.leads) != 1 {
				t.Fatalf("leads %v", w.crm.leads)
			}
			if got := w.history(job.ChatStream(bot, -1001)); len(got) != 1 {
				t.Fatalf("the chat's stream has %v", got)
			}
		})
	}
}

func TestAMigrationIsRecordedBeforeItsUpdateIs(t *testing.T) {
	w := newWorld(crm.None)
	there, _ := groupBecomesSupergroup(10)
	e := w.engine("ingress", 0)
	w.fail("append ChatMigrated", down)
	if _, _, err := e.Accept(t.Context(), there); err == nil {
		t.Fatal("answered 2xx without the migration")
	}
	if got := w.history(there.Key().Stream()); len(got) != 0 {
		t.Fatalf("stored as %v", got)
	}
	w.accept(t, there)
	w.fail("append ChatMigrated", down) // a delivery of what is stored is answered all the same
	w.accept(t, there)
	if got := w.history(job.ChatStream(bot, -1001)); len(got) != 1 {
		t.Fatalf("the chat's stream has %v", got)
	}
}

func TestWhoIsNoGroupDoesNotMigrate(t *testing.T) {
	for name, u := range map[string]job.Update{
		"a person's chat":  inChat(1, 5, `"migrate_to_chat_id":-1001`),
		"to itself":        inChat(1, -5, `"migrate_to_chat_id":-5`),
		"to a person":      inChat(1, -5, `"migrate_to_chat_id":5`),
		"to no number":     inChat(1, -5, `"migrate_to_chat_id":"-1001"`),
		"an edited one":    parse(`{"update_id":1,"edited_message":{"chat":{"id":-5},"migrate_to_chat_id":-1001}}`),
		"somebody's quote": inChat(1, -5, `"reply_to_message":{"chat":{"id":-5},"migrate_to_chat_id":-1001}`),
	} {
		if m, migrates := u.Migration(); migrates {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

// TestChatsThatCameFromEachOther cannot be, and must end all the same.
func TestChatsThatCameFromEachOther(t *testing.T) {
	w := newWorld(crm.None)
	w.plan = planByChat
	w.append(t, job.ChatStream(bot, -1001), job.ChatMigrated{Bot: bot, From: -5, To: -1001})
	w.append(t, job.ChatStream(bot, -5), job.ChatMigrated{Bot: bot, From: -1001, To: -5})
	key := w.accept(t, inChat(1, -5, `"text":"hello"`))
	w.run(t, w.engine("a", 0))
	wantPhase(t, w, key, job.Done)
}

const window = 30 * time.Second

// planSeries makes one lead of a series.
func planSeries(key job.Key, u job.Update) job.Plan {
	return job.Plan{
		Effect: true, Action: job.CreateLead, BusinessKey: key.String(), Fields: map[string]string{"source": "telegram"},
		Series: job.Series{Name: "forwards", Window: window, SentAt: time.Unix(1_700_000_000+u.ID, 0)},
	}
}

func TestASeriesIsOneLead(t *testing.T) {
	w := newWorld(crm.None)
	w.plan = planSeries
	sent := func(id int, chat int64, user string) job.Key {
		return w.accept(t, parse(fmt.Sprintf(`{"update_id":%d,"message":{"message_id":%d,"from":{"id":%s},"chat":{"id":%d},"text":"a"}}`, id, id, user, chat)))
	}
	series := []job.Key{sent(100, 5, "5"), sent(101, 5, "5"), sent(130, 5, "5"), sent(70, 5, "5")}
	apart := []job.Key{sent(131, 5, "5"), sent(102, 5, "6"), sent(103, 6, "5")}
	e := w.engine("a", 0)
	for _, key := range series {
		w.advance(t, e, key)
	}
	w.run(t, w.engine("another process", 0))
	first := wantPhase(t, w, series[0], job.Done)
	for _, key := range series[1:] {
		if s := wantPhase(t, w, key, job.Done); s.ConfirmedBy != series[0].String() || s.SharedCRMID != first.CRMID {
			t.Errorf("%s is confirmed by %q", key, s.ConfirmedBy)
		}
	}
	for _, key := range apart {
		if s := wantPhase(t, w, key, job.Done); s.CRMID == "" {
			t.Errorf("%s has no lead of its own", key)
		}
	}
	if len(w.crm.leads) != 1+len(apart) {
		t.Errorf("%d leads, want %d", len(w.crm.leads), 1+len(apart))
	}
}

// TestTwoOpenASeriesAtOnce: one of them does, the other joins it.
func TestTwoOpenASeriesAtOnce(t *testing.T) {
	w := newWorld(crm.None)
	w.plan = planSeries
	one, two := w.accept(t, inChat(1, 5, `"text":"a"`)), w.accept(t, inChat(2, 5, `"text":"b"`))
	a, b := w.engine("a", 0), w.engine("b", 0)
	w.meanwhile("append SeriesJoined", func() { w.quiet(func() { w.advance(t, b, two) }) })
	w.advance(t, a, one)
	w.run(t, a, b)
	wantPhase(t, w, one, job.Done)
	if s := wantPhase(t, w, two, job.Done); len(w.crm.leads) != 1 || s.CRMID == "" {
		t.Errorf("leads %v", w.crm.leads)
	}
}

// TestASeriesIsKeptOverACrash between its event and the claim, whatever comes between.
func TestASeriesIsKeptOverACrash(t *testing.T) {
	w := newWorld(crm.None)
	w.plan = planSeries
	one, two := w.accept(t, inChat(60, 5, `"text":"a"`)), w.accept(t, inChat(80, 5, `"text":"b"`))
	die(t, w, "a", one, "appended SeriesJoined")
	between := w.accept(t, inChat(85, 5, `"text":"c"`))
	w.advance(t, w.engine("b", 0), two)
	w.advance(t, w.engine("b", 0), between)
	w.run(t, w.engine("b", 0))
	stream := job.SeriesStream(bot, "forwards", 5, 5)
	if got := w.history(stream); len(got) != 3 || len(w.crm.leads) != 1 {
		t.Errorf("series %v, leads %v", got, w.crm.leads)
	}
}

func TestASeriesOfANewerRelease(t *testing.T) {
	w := newWorld(crm.None)
	w.plan = planSeries
	w.poison(t, job.SeriesStream(bot, "forwards", 5, 5))
	key := w.accept(t, inChat(1, 5, `"text":"a"`))
	v := w.advance(t, w.engine("a", 0), key)
	if s := wantPhase(t, w, key, job.Pending); v.Schedule != job.DueAt || !v.At.After(w.time.Now()) || s.EventCount != 1 {
		t.Errorf("verdict %+v", v)
	}
}

// TestNoTwoSeriesShareAStream, whatever hyphens there are in names and numbers.
func TestNoTwoSeriesShareAStream(t *testing.T) {
	streams := map[string]string{}
	for _, name := range []string{"x", "x-", "x-5", "x--5"} {
		for _, chat := range []int64{5, -5, 55} {
			for _, user := range []int64{5, 9, 59} {
				is, stream := fmt.Sprint(name, " ", chat, " ", user), job.SeriesStream(bot, name, chat, user)
				if other := streams[stream]; other != "" {
					t.Errorf("%s and %s: %s", is, other, stream)
				}
				streams[stream] = is
			}
		}
	}
}
