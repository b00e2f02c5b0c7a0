package telegram_test

import (
	"strings"
	"testing"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/ingress/metrics"
	"github.com/leadonce/leadonce/ingress/telegram"
)

// Any body is stored byte for byte, and then found to be a duplicate, or is
// refused and leaves nothing behind.
func FuzzDelivery(f *testing.F) {
	for _, body := range []string{
		message(1, "hello"), callback(2), `{"update_id":3}`, `{"update_id":-1,"message":"x"}`, `{"update_id":1e2}`,
		`{"update_id":4,"a":1e999999,"b":-0.0}`, `{"update_id":5,"a":"\ud800","a":"\udc00"}`, "{\"update_id\":6,\"a\":\"\u2028\"}",
		` {"update_id":7} `, `{"update_id":8}{"update_id":9}`, "\ufeff{}", "", "[]", strings.Repeat("[", 20_000), `{"":{"":{"":[]}},"update_id":10}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		log := memory.New()
		e, err := engine.New(engine.Config{
			Log: log, CRM: &connector{}, Clock: &clock{now: testTime}, IDs: randomIDs{},
			Observer: metrics.Observers(), Plan: job.DefaultPlan, Worker: "w", Policy: testPolicy,
		})
		if err != nil {
			t.Fatal(err)
		}
		handler, err := telegram.New(telegram.Config{Bots: []telegram.Bot{{ID: bot, Secrets: []string{secret}}}, Accepter: e})
		if err != nil {
			t.Fatal(err)
		}
		deliver := func() int {
			w := &answerWriter{}
			handler.ServeHTTP(w, request(string(body)))
			return w.status
		}
		status := deliver()
		var received []job.UpdateReceived
		for r, err := range log.ReadAll(t.Context(), eventlog.Start) {
			if err != nil {
				t.Fatal(err)
			}
			e, err := job.Decode(r.Type, r.Data)
			if err != nil {
				t.Fatal(err)
			}
			received = append(received, e.(job.UpdateReceived))
		}
		switch {
		case status == 200 && (len(received) != 1 || received[0].Update != string(body)):
			t.Fatalf("answered 200, stored %q", received)
		case status == 200 && deliver() != 200:
			t.Fatal("the second delivery is not answered 200")
		case status != 200 && (status != 400 && status != 413 || len(received) > 0):
			t.Fatalf("answered %d, stored %q", status, received)
		}
	})
}
