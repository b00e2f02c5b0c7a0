package botapi

import (
	"context"
	"strings"
	"time"
)

// Review looks at the delivery as Telegram tells of it. want is the webhook's
// address, empty where only another program's would be found out; fetching says
// that updates are to be fetched, and no webhook to be set.
func (c *Client) Review(ctx context.Context, want string, fetching bool) (WebhookInfo, []Finding, error) {
	me, err := c.GetMe(ctx)
	if err != nil {
		return WebhookInfo{}, nil, err
	}
	findings := []Finding{fine("token", "it is of bot %d, @%s", me.ID, c.describe(me.Username))}
	info, err := c.GetWebhookInfo(ctx)
	if err != nil {
		return info, nil, err
	}
	const set = "run `leadonce webhook set`"
	switch {
	case info.URL == "" && !fetching:
		findings = append(findings, problem("webhook", set+", or, where `leadonce serve --poll` fetches, check with --poll; another program with this token that fetches updates deletes webhooks: stop it", "none is set"))
	case info.URL != "" && fetching:
		findings = append(findings, problem("webhook", "run `leadonce webhook delete`", "one is set, so updates cannot be fetched"))
	case info.URL != "" && want != "" && info.URL != c.Hide(want):
		findings = append(findings, problem("webhook", set+", and stop the other program that uses this token", "it is set to another address"))
	case info.URL != "":
		findings = append(findings, fine("webhook", "it is set"))
	}
	if info.URL == "" {
		findings = append(findings, c.otherConsumer(ctx))
	} else {
		findings = append(findings, note("other programs", "", "one that fetches updates is kept out by the webhook, and cannot be seen"))
	}
	if missing := info.Missing(); len(missing) > 0 && !fetching {
		findings = append(findings, problem("kinds", set+", which asks for all; a local Bot API server may be too old to know them", "not delivered: %s", strings.Join(missing, ", ")))
	}
	if info.HasCustomCertificate {
		findings = append(findings, note("certificate", "", "Telegram was given it with the webhook, which `leadonce webhook set` does not do"))
	}
	return info, append(findings, info.troubles(time.Now())...), nil
}

// recent is how long ago an error counts.
const recent = time.Hour

func (i WebhookInfo) troubles(now time.Time) []Finding {
	var findings []Finding
	if i.LastErrorMessage != "" {
		x, at := Explain(i.LastErrorMessage), time.Unix(i.LastErrorDate, 0)
		level := Note
		if now.Sub(at) < recent {
			level = Problem
		}
		findings = append(findings, Finding{level, "last error", at.UTC().Format(time.RFC3339) + " " + i.LastErrorMessage + ": " + x.Meaning, x.Mend})
	}
	if i.LastSyncErrorDate > 0 && now.Sub(time.Unix(i.LastSyncErrorDate, 0)) < recent {
		findings = append(findings, note("Telegram", "wait: it is Telegram's own trouble", "its data centres could not be synchronized at %s", time.Unix(i.LastSyncErrorDate, 0).UTC().Format(time.RFC3339)))
	}
	if i.PendingUpdateCount > 0 {
		findings = append(findings, note("pending", "", "%d updates wait", i.PendingUpdateCount))
	}
	return findings
}

// otherProbe is how long another program has to show itself.
const otherProbe = 5 * time.Second

// otherConsumer fetches, and confirms nothing. Telegram lets one fetch at a time: a
// program that was there comes back and ends this call.
func (c *Client) otherConsumer(ctx context.Context) Finding {
	waiting, err := c.getUpdates(ctx, 0, 1, otherProbe, nil)
	switch conflict := ConflictOf(err); {
	case conflict == OtherConsumer:
		return problem("other programs", "stop it, unless it is the one `leadonce serve --poll` that there should be", "a program fetches this bot's updates")
	case err != nil:
		return note("other programs", "try again", "not known: %v", err)
	case len(waiting) > 0:
		return note("other programs", "", "not known: updates wait, so nothing was held up to see them")
	default:
		return fine("other programs", "none was seen fetching this bot's updates")
	}
}
