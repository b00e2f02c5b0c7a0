package metrics_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leadonce/leadonce/ingress/metrics"
)

// TestTheFirstOneIsNoGrowth: a series that appears with its first event has not
// grown, and an alarm on its growth stays silent.
func TestTheFirstOneIsNoGrowth(t *testing.T) {
	m := metrics.New()
	m.Expect(7)
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`leadonce_events_total{event="JobDeadLettered"} 0`,
		`leadonce_events_total{event="ReceiptConflicted"} 0`,
		`leadonce_deliveries_total{bot="7",result="unauthorized"} 0`,
		`leadonce_deliveries_total{bot="7",result="unavailable"} 0`,
		`leadonce_replies_total{result="sent"} 0`,
		`leadonce_replies_total{result="unknown"} 0`,
	} {
		if !strings.Contains(answer.Body.String(), want) {
			t.Errorf("no series %s", want)
		}
	}
}
