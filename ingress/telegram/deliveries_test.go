package telegram_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/ingress/telegram"
)

func TestT01_CallbackDeliveredThreeTimes(t *testing.T) {
	s := newScene(t, setup{})
	for range 3 {
		s.want(200, s.deliver(callback(9001)))
	}
	s.wantResults(telegram.Stored, telegram.Duplicate, telegram.Duplicate)
	s.wantStreams(1)
	s.wantEvents(key(bot, 9001), "UpdateReceived", "DeliveryRepeated", "DeliveryRepeated")
	s.work()
	s.crm.wantLeads(t, 1)
}

func TestT02_TwoInstancesGetTheSameUpdateAtOnce(t *testing.T) {
	log, crm := memory.New(), &connector{}
	first, second := newScene(t, setup{log: log, crm: crm}), newScene(t, setup{log: log, crm: crm})
	const updates = 50
	var wg sync.WaitGroup
	for id := range int64(updates) {
		for _, s := range []*scene{first, second} {
			wg.Go(func() { s.want(200, s.deliver(message(id, text))) })
		}
	}
	wg.Wait()
	stored := first.results.count(telegram.Stored) + second.results.count(telegram.Stored)
	repeated := first.results.count(telegram.Duplicate) + second.results.count(telegram.Duplicate)
	if stored != updates || repeated != updates {
		t.Errorf("%d stored and %d duplicates, want %d each", stored, repeated, updates)
	}
	for id := range int64(updates) {
		first.wantEvents(key(bot, id), "UpdateReceived", "DeliveryRepeated")
	}
	first.work()
	second.work()
	crm.wantLeads(t, updates)
}

func TestT03_FirstRequestStallsBeforeTheAppend(t *testing.T) {
	log := &hookedLog{Log: memory.New()}
	s := newScene(t, setup{log: log})
	stalled, goOn := make(chan struct{}), make(chan struct{})
	log.set(func(context.Context, string) error {
		log.set(nil, nil) // the others pass
		close(stalled)
		<-goOn
		return nil
	}, nil)
	first := make(chan response, 1)
	go func() { first <- s.deliver(message(9003, text)) }()
	<-stalled
	s.clock.pass(time.Minute)
	s.want(200, s.deliver(message(9003, text)))
	close(goOn)
	s.want(200, <-first)
	s.wantResults(telegram.Stored, telegram.Duplicate)
	s.wantEvents(key(bot, 9003), "UpdateReceived", "DeliveryRepeated")
	s.work()
	s.crm.wantLeads(t, 1)
}

func TestT04_RestartBetweenDeliveries(t *testing.T) {
	path, crm := logFile(t), &connector{}
	for run, want := range []telegram.Result{telegram.Stored, telegram.Duplicate, telegram.Duplicate} {
		t.Run(fmt.Sprint("run ", run), func(t *testing.T) {
			log := openSQLite(t, path)
			s := newScene(t, setup{log: log, crm: crm})
			s.want(200, s.deliver(message(9004, text)))
			s.wantResults(want)
			s.work()
			crm.wantLeads(t, 1)
			if err := log.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestT05_DuplicateAfterHoursAndWeeks(t *testing.T) {
	s := newScene(t, setup{})
	s.want(200, s.deliver(message(9005, text)))
	s.work()
	s.clock.pass(26 * time.Hour)
	s.want(200, s.deliver(message(9005, text)))
	s.clock.pass(40 * 24 * time.Hour)
	s.want(200, s.deliver(message(9005, text)))
	s.wantResults(telegram.Stored, telegram.Duplicate, telegram.Duplicate)
	s.work()
	s.crm.wantLeads(t, 1)
}

func TestT06_TwoReleasesDuringADeploy(t *testing.T) {
	path, crm := logFile(t), &connector{}
	older, newer := openSQLite(t, path), openSQLite(t, path)
	defer older.Close()
	defer newer.Close()
	releases := []*scene{
		newScene(t, setup{log: older, crm: crm, worker: "older"}),
		newScene(t, setup{log: newer, crm: crm, worker: "newer"}),
	}
	const updates = 20
	var wg sync.WaitGroup
	for _, s := range releases {
		wg.Go(func() {
			for id := range int64(updates) {
				s.want(200, s.deliver(message(id, text)))
			}
			s.work()
		})
	}
	wg.Wait()
	releases[0].work()
	crm.wantLeads(t, updates)
	for id := range int64(updates) {
		if phase := releases[1].job(key(bot, id)).Phase; phase != job.Done {
			t.Errorf("job %d is in %s, want done", id, phase)
		}
	}
}

func TestT07_UpdateIDsRestartLower(t *testing.T) {
	s := newScene(t, setup{})
	s.want(200, s.deliver(message(727334708, text)))
	s.want(200, s.deliver(message(117314199, text)))
	s.wantResults(telegram.Stored, telegram.Stored)
	s.work()
	s.crm.wantLeads(t, 2)
}

func TestT08_NextUpdateBeforeAndBesideItsForerunner(t *testing.T) {
	s := newScene(t, setup{})
	s.want(200, s.deliver(message(9009, text)))
	s.want(200, s.deliver(message(9008, text)))
	var wg sync.WaitGroup
	for _, id := range []int64{9010, 9011} {
		wg.Go(func() { s.want(200, s.deliver(message(id, text))) })
	}
	wg.Wait()
	s.wantResults(telegram.Stored, telegram.Stored, telegram.Stored, telegram.Stored)
	s.work()
	s.crm.wantLeads(t, 4)
}

func TestT09_NewBotHasLowerIDs(t *testing.T) {
	s := newScene(t, setup{})
	s.want(200, s.post(bot, secret, message(900_000_000, text)))
	for id := range int64(3) {
		s.want(200, s.post(secondBot, secondBots, message(100+id, text)))
	}
	s.wantResults(telegram.Stored, telegram.Stored, telegram.Stored, telegram.Stored)
	s.wantEvents(key(secondBot, 101), "UpdateReceived")
}

func TestT10_TwoBotsWithEqualUpdateIDs(t *testing.T) {
	s := newScene(t, setup{})
	s.want(200, s.post(bot, secret, message(9010, text)))
	s.want(200, s.post(secondBot, secondBots, message(9010, text)))
	s.wantResults(telegram.Stored, telegram.Stored)
	s.wantEvents(key(bot, 9010), "UpdateReceived")
	s.wantEvents(key(secondBot, 9010), "UpdateReceived")
	s.work()
	s.crm.wantLeads(t, 2)
}

func TestT11_SameIDAnotherContent(t *testing.T) {
	s := newScene(t, setup{})
	s.want(200, s.deliver(message(9011, text)))
	s.clock.pass(8 * 24 * time.Hour)
	other := message(9011, text+", another")
	s.want(200, s.deliver(other))
	s.want(200, s.deliver(other))
	s.wantResults(telegram.Stored, telegram.Conflicted, telegram.Duplicate)
	s.wantEvents(key(bot, 9011), "UpdateReceived", "KeyConflicted")
	variant := s.job(key(bot, 9011)).Variants
	if len(variant) != 1 {
		t.Fatalf("variants %v, want one", variant)
	}
	for _, name := range variant {
		k, err := job.ParseKey(name)
		s.must(err)
		s.wantEvents(k, "UpdateReceived", "DeliveryRepeated")
		if got := s.job(k).Update; got != other {
			t.Errorf("the other update is stored as %q", got)
		}
	}
	request, err := s.request(http.MethodGet, "/metrics", nil)
	s.must(err)
	answer, err := client.Do(request)
	s.must(err)
	if scraped := readAll(t, answer.Body); !strings.Contains(scraped, "\nleadonce_keys_conflicted_total 1\n") {
		t.Error("no alarm: leadonce_keys_conflicted_total is not 1")
	}
	if !strings.Contains(s.lines.String(), `"level":"WARN","msg":"delivery","result":"conflicted"`) {
		t.Error("no alarm: the log has no warning")
	}
	s.work()
	s.crm.wantLeads(t, 2)
}

func TestT12_SameUpdateSpelledDifferently(t *testing.T) {
	s := newScene(t, setup{})
	for _, body := range []string{
		`{"update_id":9012,"message":{"message_id":1,"chat":{"id":5,"type":"private"},"date":1,"text":"Привет 😀 / canary"}}`,
		`{"message":{"text":"Привет 😀 / canary","date":1,"chat":{"type":"private","id":5},"message_id":1},"update_id":9012}`,
		"{ \"update_id\" : 9012 ,\r\n\t\"message\":{\"message_id\":1,\"chat\":{\"id\":5,\"type\":\"private\"},\"date\":1,\"text\":\"Привет 😀 / canary\"}}\n",
		`{"update_id":9012,"message":{"message_id":1,"chat":{"id":5,"type":"private"},"date":1,"text":"\u041f\u0440\u0438\u0432\u0435\u0442 \ud83d\ude00 \/ canary"}}`,
		`{"update\u005fid":9012,"message":{"message_id":1,"chat":{"id":5,"type":"private"},"date":1,"text":"Привет \uD83D\uDE00 / canary"}}`,
	} {
		s.want(200, s.deliver(body))
	}
	s.wantResults(telegram.Stored, telegram.Duplicate, telegram.Duplicate, telegram.Duplicate, telegram.Duplicate)
	s.wantStreams(1)
	s.wantEvents(key(bot, 9012), "UpdateReceived", "DeliveryRepeated", "DeliveryRepeated", "DeliveryRepeated", "DeliveryRepeated")
}

func TestT13_LargeAndNegativeIDs(t *testing.T) {
	for _, c := range []struct{ update, chat, user int64 }{
		{1<<31 + 7, -1001234567890123, 1<<52 - 1},
		{1<<52 + 1, -(1<<52 + 1), 1<<31 + 1},
		{1<<63 - 1, -1 << 63, 1<<63 - 1},
	} {
		s := newScene(t, setup{})
		body := fmt.Sprintf(`{"update_id":%d,"message":{"message_id":1,"from":{"id":%d},"chat":{"id":%d},"text":"canary"}}`, c.update, c.user, c.chat)
		s.want(200, s.deliver(body))
		got := s.job(key(bot, c.update))
		if got.Key.Update != c.update || got.Chat != c.chat || got.User != c.user || got.Update != body {
			t.Errorf("stored update %d of chat %d and user %d, want %+v", got.Key.Update, got.Chat, got.User, c)
		}
		line := fmt.Sprintf(`"update_id":%d,"chat":%d,"user":%d,`, c.update, c.chat, c.user)
		if !strings.Contains(s.lines.String(), line) {
			t.Errorf("the log line has not %s", line)
		}
	}
}
