package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leadonce/leadonce/ingress/botapi"
)

func webhookInfoCommand() *cobra.Command {
	c := &cobra.Command{Use: "info", Short: "Show a bot's webhook, what waits, and what the last error means", Args: noArgs}
	bot, out := withBot(c), withOutput(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := out.check(); err != nil {
			return err
		}
		_, b, client, err := bot.open(false)
		if err != nil {
			return err
		}
		defer client.Close()
		info, err := client.GetWebhookInfo(c.Context())
		if err != nil {
			return callFailed(err)
		}
		if out.json() {
			return writeJSON(c.OutOrStdout(), describedWebhook(b.ID, info))
		}
		return writeWebhook(c.OutOrStdout(), b.ID, info)
	}
	return c
}

// webhookDescription is what info prints as JSON.
type webhookDescription struct {
	Bot       int64               `json:"bot"`
	Webhook   botapi.WebhookInfo  `json:"webhook"`
	Missing   []string            `json:"missing_updates"` // kinds that are not delivered
	LastError *botapi.Explanation `json:"last_error,omitempty"`
}

func describedWebhook(bot int64, info botapi.WebhookInfo) webhookDescription {
	d := webhookDescription{Bot: bot, Webhook: info, Missing: append([]string{}, info.Missing()...)}
	if info.LastErrorMessage != "" {
		x := botapi.Explain(info.LastErrorMessage)
		d.LastError = &x
	}
	return d
}

func writeWebhook(w io.Writer, bot int64, info botapi.WebhookInfo) error {
	rows := [][2]string{{"bot", strconv.FormatInt(bot, 10)}, {"webhook", "none"}}
	if info.URL != "" {
		rows[1][1] = shownURL(info.URL)
		rows = append(rows, [2]string{"ip address", info.IPAddress}, [2]string{"connections", fmt.Sprintf("at most %d", info.MaxConnections)})
	}
	rows = append(rows, [2]string{"pending", strconv.Itoa(info.PendingUpdateCount)})
	kinds := "all"
	if missing := info.Missing(); len(missing) > 0 {
		kinds = "all but " + strings.Join(missing, ", ")
	}
	rows = append(rows, [2]string{"updates", kinds})
	if info.LastErrorMessage != "" {
		d := botapi.Explain(info.LastErrorMessage)
		rows = append(rows, [2]string{"last error", stamp(time.Unix(info.LastErrorDate, 0)) + " " + info.LastErrorMessage},
			[2]string{"  it means", d.Meaning}, [2]string{"  the mend", d.Mend})
	}
	return writeTable(w, rows)
}

func webhookCheckCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "check [URL]",
		Short: "Look for what keeps a bot's updates from arriving; exit 1 when something does",
		Long: "Look for what keeps a bot's updates from arriving, in what Telegram tells and by trying the address.\n" +
			"With URL, where the webhook is meant to be, the secret is tried there too; no secret is sent to an\n" +
			"address that is only found set. Nothing is stored by it.\n" +
			"Where no webhook is set, it fetches without confirming for 5 s: that interrupts for a moment another\n" +
			"program that fetches, which is how such a one is seen.",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return mistake("leadonce webhook check takes at most one URL; see `leadonce webhook check --help`")
			}
			return nil
		},
	}
	bot, out := withBot(c), withOutput(c)
	polling := c.Flags().Bool("poll", false, "updates are meant to be fetched, by `leadonce serve --poll` (default: what poll says, where no URL is given)")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := out.check(); err != nil {
			return err
		}
		if *polling && len(args) > 0 {
			return mistake("URL and --poll: updates are either delivered or fetched, give one of them")
		}
		config, err := bot.read()
		if err != nil {
			return err
		}
		*polling = *polling || config.Poll && len(args) == 0
		_, b, client, err := bot.open(!*polling)
		if err != nil {
			return err
		}
		defer client.Close()
		endpoint := botapi.Endpoint{Bot: b.ID, Local: client.Local()}
		if len(args) == 1 {
			if endpoint.URL, err = completedURL(args[0], client); err != nil {
				return err
			}
			endpoint.Secret = b.Secrets[0]
		}
		info, findings, err := client.Review(c.Context(), endpoint.URL, *polling)
		if err != nil {
			return callFailed(err)
		}
		if endpoint.URL == "" {
			endpoint.URL = info.URL
		}
		if endpoint.URL != "" && !*polling {
			findings = append(findings, endpoint.Look(c.Context())...)
		}
		return reportFindings(c.OutOrStdout(), out.json(), b.ID, findings)
	}
	return c
}

func reportFindings(w io.Writer, asJSON bool, bot int64, findings []botapi.Finding) error {
	problems := 0
	rows := make([][2]string, 0, len(findings))
	for _, f := range findings {
		if f.Level == botapi.Problem {
			problems++
		}
		text := f.Subject + ": " + f.What
		if f.Mend != "" {
			text += "; " + f.Mend
		}
		rows = append(rows, [2]string{string(f.Level), text})
	}
	var err error
	if asJSON {
		err = writeJSON(w, map[string]any{"bot": bot, "ok": problems == 0, "findings": findings})
	} else {
		err = writeTable(w, rows)
	}
	if err == nil && problems > 0 {
		return errFound
	}
	return err
}
