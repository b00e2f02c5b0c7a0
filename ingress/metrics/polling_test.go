package metrics_test

import (
	"testing"
	"time"

	"github.com/leadonce/leadonce/ingress/metrics"
	"github.com/leadonce/leadonce/ingress/poll"
)

// A bot whose updates are not fetched can be seen, and one whose are too.
func TestFetchesAreMeasured(t *testing.T) {
	m := metrics.New()
	m.Fetches(7, func() time.Duration { return 90 * time.Second })
	m.Fetches(8, func() time.Duration { return time.Second })
	m.Fetched(poll.Fetch{Bot: 7, Trouble: poll.WebhookSet})
	m.Fetched(poll.Fetch{Bot: 7, Trouble: poll.WebhookSet})
	m.Fetched(poll.Fetch{Bot: 8})
	want(t, scrape(t, m),
		`leadonce_poll_silence_seconds{bot="7"} 90`, `leadonce_poll_silence_seconds{bot="8"} 1`,
		`leadonce_poll_failures_total{bot="7",kind="webhook_set"} 2`, `leadonce_poll_failures_total{bot="7",kind="unreachable"} 0`,
		`leadonce_poll_failures_total{bot="8",kind="webhook_set"} 0`)
}
