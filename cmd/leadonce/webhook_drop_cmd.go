package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/ingress/botapi"
)

// drop are the flags of a command that can lose pending updates.
type drop struct {
	wanted *bool
	signed *job.Signature
}

func withDrop(c *cobra.Command) drop {
	d := drop{wanted: c.Flags().Bool("drop-pending-updates", false, "lose every update that waits, for good; recorded, with --by and --reason"), signed: &job.Signature{}}
	c.Flags().StringVar(&d.signed.By, "by", "", "who drops; recorded, needed by --drop-pending-updates")
	c.Flags().StringVar(&d.signed.Reason, "reason", "", "why; recorded, needed by --drop-pending-updates")
	return d
}

func (d drop) check() error {
	if !*d.wanted {
		return nil
	}
	return checkSignature(d.signed)
}

// record counts what the command is about to lose and writes that into the log,
// before anything is lost. What cannot be recorded is not dropped.
func (d drop) record(cmd *cobra.Command, c config, client *botapi.Client) (count int, err error) {
	const nothing = "nothing is dropped, since "
	ctx := cmd.Context()
	if err := c.checkLog(); err != nil {
		return 0, err
	}
	log, closeLog, err := openLog(ctx, c, false, slog.New(slog.DiscardHandler))
	if err != nil {
		return 0, fmt.Errorf(nothing+"it cannot be recorded: %w", err)
	}
	defer func() { err = errors.Join(err, closeLog()) }()
	info, err := client.GetWebhookInfo(ctx)
	if err != nil {
		return 0, fmt.Errorf(nothing+"the pending updates cannot be counted: %w", callFailed(err))
	}
	dropped := job.PendingUpdatesDropped{Bot: client.Bot(), Count: info.PendingUpdateCount, By: d.signed.By, Reason: d.signed.Reason}
	if err := appendEvent(ctx, log, job.BotStream(dropped.Bot), dropped); err != nil {
		return 0, fmt.Errorf(nothing+"it cannot be recorded: %w", err)
	}
	newLogger(cmd.ErrOrStderr(), c.Logging).Warn("pending updates are dropped", "bot", dropped.Bot, "count", dropped.Count, "by", dropped.By)
	return dropped.Count, nil
}

// appendEvent appends one event at the end of a stream. Without an error it is there,
// once.
func appendEvent(ctx context.Context, log eventlog.Log, stream string, e job.Event) error {
	name, data, err := job.Encode(e)
	if err != nil {
		return err
	}
	proposed := eventlog.Proposed{ID: randomIDs{}.New(), Type: name, Time: systemClock{}.Now(), Data: data}
	for range 3 { // the same id: what is there already is not added again
		_, err = log.Append(ctx, stream, eventlog.Any, proposed)
		if !eventlog.IsUnknown(err) {
			break
		}
	}
	return err
}

// droppedUpdates is one drop as it is printed.
type droppedUpdates struct {
	At       time.Time `json:"at"`
	Revision uint64    `json:"revision"`
	job.PendingUpdatesDropped
}

func webhookDropsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "drops",
		Short: "List when pending updates were dropped, by whom and why",
		Long: "List when pending updates of a bot were dropped, by whom and why, from the log. COUNT is how many\n" +
			"waited at Telegram right before; when the request failed they may have come later.",
		Args: noArgs,
	}
	read, out := withConfig(c), withOutput(c)
	bot := c.Flags().Int64("bot", 0, "the bot's id; default: all bots of the configuration")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := out.check(); err != nil {
			return err
		}
		return withLog(c, read, func(ctx context.Context, config config, log eventlog.Log) error {
			bots := []int64{*bot}
			if *bot == 0 {
				bots = nil
				for _, b := range config.Bots {
					bots = append(bots, b.ID)
				}
			}
			drops, err := readDrops(ctx, log, bots)
			if err != nil {
				return err
			}
			if out.json() {
				return writeJSON(c.OutOrStdout(), drops)
			}
			return writeDrops(c.OutOrStdout(), drops)
		})
	}
	return c
}

func readDrops(ctx context.Context, log eventlog.Log, bots []int64) ([]droppedUpdates, error) {
	drops := []droppedUpdates{}
	for _, bot := range bots {
		stream := job.BotStream(bot)
		for r, err := range log.ReadStream(ctx, stream, 0) {
			if err != nil {
				return nil, err
			}
			event, err := job.Decode(r.Type, r.Data)
			if err != nil {
				return nil, fmt.Errorf("%s, revision %d: %w", stream, r.Revision, err)
			}
			if e, ok := event.(job.PendingUpdatesDropped); ok {
				drops = append(drops, droppedUpdates{r.Time, r.Revision, e})
			}
		}
	}
	return drops, nil
}

func writeDrops(w io.Writer, drops []droppedUpdates) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "BOT\tTIME\tCOUNT\tBY\tREASON")
	for _, d := range drops {
		fmt.Fprintf(t, "%d\t%s\t%d\t%s\t%s\n", d.Bot, stamp(d.At), d.Count, d.By, d.Reason)
	}
	return t.Flush()
}
