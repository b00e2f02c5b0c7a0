package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/leadonce/leadonce/ingress/botapi"
)

func webhookCommand() *cobra.Command {
	parent := &cobra.Command{
		Use: "webhook", Short: "Set, look at and try the webhook of a bot", Args: noArgs, RunE: help,
		Long: "Set, look at and try the webhook of a bot of the configuration. Its token is in the environment,\n" +
			"in TELEGRAM_BOT_TOKEN_<bot id> or TELEGRAM_BOT_TOKEN, and nowhere else.",
	}
	parent.AddCommand(webhookSetCommand(), webhookInfoCommand(), webhookDeleteCommand(), webhookCheckCommand(), webhookDropsCommand())
	return parent
}

// apiURL is where the Bot API is.
func apiURL() string { return envOr("TELEGRAM_API_URL", botapi.Official) }

// callPatience is how long a command waits in all when Telegram asks it to.
const callPatience = time.Minute

// botFlags are the flags by which a command finds its bot.
type botFlags struct {
	read func() (config, error)
	id   *int64
	api  *string
}

func withBot(c *cobra.Command) botFlags {
	return botFlags{
		read: withConfig(c),
		id:   c.Flags().Int64("bot", 0, "the bot's id; needed when the configuration has several"),
		api:  c.Flags().String("api", apiURL(), "address of a local Bot API server (or TELEGRAM_API_URL)"),
	}
}

// open returns the configuration, the bot in it and a client for it. secrets says
// whether the bot's secrets must be there.
func (f botFlags) open(secrets bool) (config, botConfig, *botapi.Client, error) {
	c, err := f.read()
	if err != nil {
		return c, botConfig{}, nil, err
	}
	if secrets || len(c.Bots) == 0 {
		if err := c.checkBots(); err != nil {
			return c, botConfig{}, nil, err
		}
	}
	if *f.id == 0 && len(c.Bots) > 1 {
		return c, botConfig{}, nil, mistake("--bot: the configuration has several bots, name one by its id")
	}
	i := slices.IndexFunc(c.Bots, func(b botConfig) bool { return *f.id == 0 || b.ID == *f.id })
	if i < 0 {
		return c, botConfig{}, nil, mistake("--bot: %d is not in the configuration, add it under bots", *f.id)
	}
	client, err := botClient(c.Bots[i].ID, *f.api, callPatience)
	return c, c.Bots[i], client, err
}

// botClient is a client for the bot, with its token from the environment.
func botClient(bot int64, api string, patience time.Duration) (*botapi.Client, error) {
	const common = "TELEGRAM_BOT_TOKEN"
	name := common + "_" + strconv.FormatInt(bot, 10)
	token := os.Getenv(name)
	if token == "" {
		name, token = common, os.Getenv(common)
	}
	if token == "" {
		return nil, mistake("the environment variable %s is not set; export the token that @BotFather shows, in it or in %s_%d", common, common, bot)
	}
	client, err := botapi.New(botapi.Config{Token: token, BaseURL: api, Patience: patience})
	if err != nil {
		return nil, mistake("%s, --api: %v", name, err)
	}
	if client.Bot() != bot {
		return nil, mistake("%s: the token is of bot %d, and bot %d is asked for", name, client.Bot(), bot)
	}
	return client, nil
}

// callFailed adds to a refusal what it means.
func callFailed(err error) error {
	var e *botapi.Error
	switch {
	case botapi.Unauthorized(err):
		return fmt.Errorf("%w: the token is refused, export the one that @BotFather shows now", err)
	case errors.As(err, &e) && e.Code == 400:
		x := botapi.Explain(e.Description)
		return fmt.Errorf("%w: %s; %s", err, x.Meaning, x.Mend)
	default:
		return err
	}
}

// webhookOutcome is what set and delete print.
type webhookOutcome struct {
	Bot     int64              `json:"bot"`
	Dropped int                `json:"dropped"` // updates that waited and are lost
	Webhook botapi.WebhookInfo `json:"webhook"` // read back
	Wrong   []string           `json:"wrong"`   // what was read back otherwise than given
}

func (o webhookOutcome) write(w io.Writer, asJSON, asked bool) error {
	if asJSON {
		if err := writeJSON(w, o); err != nil {
			return err
		}
	} else {
		if o.Webhook.URL == "" {
			fmt.Fprintf(w, "bot %d has no webhook\n", o.Bot)
		} else {
			fmt.Fprintf(w, "bot %d: the webhook is %s\n", o.Bot, shownURL(o.Webhook.URL))
			fmt.Fprintf(w, "kinds of update: %d of %d; at most %d connections; a secret was given, it cannot be read back\n",
				len(botapi.AllowedUpdates())-len(o.Webhook.Missing()), len(botapi.AllowedUpdates()), o.Webhook.MaxConnections)
		}
		if asked {
			fmt.Fprintf(w, "%d pending updates were dropped\n", o.Dropped)
		}
		fmt.Fprintf(w, "pending: %d\n", o.Webhook.PendingUpdateCount)
		for _, wrong := range o.Wrong {
			fmt.Fprintf(w, "WRONG: %s\n", wrong)
		}
	}
	if len(o.Wrong) > 0 {
		return errFound
	}
	return nil
}

// shownURL is an address without a password.
func shownURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "not a URL"
	}
	return u.Redacted()
}

func webhookSetCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "set URL",
		Short: "Have a bot's updates delivered to URL, and read back what was set",
		Long: "Have a bot's updates delivered to URL: every kind of them, with the first of the bot's secrets.\n" +
			"/telegram/<bot id> is added to a URL without a path. What waits is kept and delivered, unless\n" +
			"--drop-pending-updates is given: then it is lost, and the log says how much, by whom and why.",
		Args: exactArgs("URL"),
	}
	bot, out := withBot(c), withOutput(c)
	connections := c.Flags().Int("max-connections", 40, "how many deliveries Telegram may make at the same time, 1 to 100")
	drop := withDrop(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := errors.Join(out.check(), drop.check()); err != nil {
			return err
		}
		if *connections < 1 || *connections > 100 {
			return mistake("--max-connections: %d, give 1 to 100", *connections)
		}
		config, b, client, err := bot.open(true)
		if err != nil {
			return err
		}
		defer client.Close()
		w := botapi.Webhook{
			SecretToken: b.Secrets[0], MaxConnections: *connections, AllowedUpdates: botapi.AllowedUpdates(), DropPendingUpdates: *drop.wanted,
		}
		if w.URL, err = webhookURL(args[0], client); err != nil {
			return err
		}
		warnAddress(c.ErrOrStderr(), w.URL, client)
		o := webhookOutcome{Bot: b.ID, Wrong: []string{}}
		if *drop.wanted {
			if o.Dropped, err = drop.record(c, config, client); err != nil {
				return err
			}
		}
		if err := client.SetWebhook(c.Context(), w); err != nil {
			return callFailed(err)
		}
		if o.Webhook, err = client.GetWebhookInfo(c.Context()); err != nil {
			return fmt.Errorf("the webhook is set, and cannot be read back: %w", err)
		}
		o.Wrong = append(o.Wrong, differences(client, w, o.Webhook)...)
		return o.write(c.OutOrStdout(), out.json(), *drop.wanted)
	}
	return c
}

// webhookURL completes and checks an address.
func webhookURL(address string, client *botapi.Client) (string, error) {
	address, err := completedURL(address, client)
	if err != nil || client.Local() {
		return address, err
	}
	if err := botapi.CheckURL(address); err != nil {
		return "", mistake("URL: %v", err)
	}
	return address, nil
}

// warnAddress tells what may be meant, and mostly is not: a local server of the Bot API
// delivers where Telegram does not, and a proxy may change the path.
func warnAddress(w io.Writer, address string, client *botapi.Client) {
	if err := botapi.CheckURL(address); err != nil {
		fmt.Fprintf(w, "leadonce: URL: %v; a local Bot API server may deliver there, Telegram does not\n", err)
	}
	path := botapi.Path(client.Bot())
	if u, err := url.Parse(address); err == nil && u.Path != path {
		fmt.Fprintf(w, "leadonce: URL: its path is not %s, where leadonce takes deliveries: the proxy in front has to change it\n", path)
	}
}

// completedURL adds the path to an address that has none.
func completedURL(address string, client *botapi.Client) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return "", mistake("URL: give one such as https://leads.example.com")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = botapi.Path(client.Bot())
		return u.String(), nil
	}
	return address, nil
}

// differences are what was read back otherwise than it was given.
func differences(client *botapi.Client, given botapi.Webhook, info botapi.WebhookInfo) (wrong []string) {
	if info.URL != client.Hide(given.URL) {
		wrong = append(wrong, "the address that was read back is another one: another program sets this bot's webhook too")
	}
	if info.MaxConnections != given.MaxConnections {
		wrong = append(wrong, fmt.Sprintf("max_connections is %d, given was %d", info.MaxConnections, given.MaxConnections))
	}
	if missing := info.Missing(); len(missing) > 0 {
		wrong = append(wrong, "not delivered are "+strings.Join(missing, ", ")+": the Bot API server does not know them, a local one may be too old; or another program set allowed_updates")
	}
	return wrong
}

func webhookDeleteCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "delete",
		Short: "Remove a bot's webhook; its updates wait for a day at most",
		Args:  noArgs,
	}
	bot, out := withBot(c), withOutput(c)
	drop := withDrop(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := errors.Join(out.check(), drop.check()); err != nil {
			return err
		}
		config, b, client, err := bot.open(false)
		if err != nil {
			return err
		}
		defer client.Close()
		o := webhookOutcome{Bot: b.ID, Wrong: []string{}}
		if *drop.wanted {
			if o.Dropped, err = drop.record(c, config, client); err != nil {
				return err
			}
		}
		if err := client.DeleteWebhook(c.Context(), *drop.wanted); err != nil {
			return callFailed(err)
		}
		if o.Webhook, err = client.GetWebhookInfo(c.Context()); err != nil {
			return fmt.Errorf("the webhook is deleted, and it cannot be read back: %w", err)
		}
		if o.Webhook.URL != "" {
			o.Wrong = append(o.Wrong, "a webhook is set again: another program does it")
		}
		return o.write(c.OutOrStdout(), out.json(), *drop.wanted)
	}
	return c
}

func writeTable(w io.Writer, rows [][2]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%s\n", r[0], r[1])
	}
	return t.Flush()
}
