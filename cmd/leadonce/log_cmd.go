package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/logcopy"
)

func logCommand() *cobra.Command {
	parent := &cobra.Command{Use: "log", Short: "Move the log", Args: noArgs, RunE: help}
	parent.AddCommand(logCopyCommand())
	return parent
}

func logCopyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "copy --from LOG --to LOG",
		Short: "Copy a log event by event into another one, and compare them",
		Long: "LOG is " + logForms + ". ${NAME} in it is the environment's value.\n" +
			"The target may be empty or have the first events of the source, each the same: the\n" +
			"command goes on where an earlier one was broken off. The source may be in use. With\n" +
			"--follow the copy keeps up with it; SIGINT or SIGTERM then ends the copy at the source's\n" +
			"tail.",
		Args: noArgs,
	}
	from := c.Flags().String("from", "", "the log to copy (required)")
	to := c.Flags().String("to", "", "the log to copy into; made when there is none (required)")
	follow := c.Flags().Bool("follow", false, "go on with what comes, until a signal")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return withLogs(c.Context(), *from, *to, func(ctx context.Context, source, target eventlog.Log) error {
			w := c.ErrOrStderr()
			copying := logcopy.New(source, target, logcopy.Options{
				Sleep: systemClock{}.Sleep, Progress: copyProgress(w),
				Troubled: func(err error, wait time.Duration) {
					fmt.Fprintf(w, "copying the log: tried again in %s: %v\n", wait, err)
				},
			})
			if err := copyLog(ctx, copying, *follow, w); err != nil {
				return err
			}
			return writeCounts(c.OutOrStdout(), copying.Counts())
		})
	}
	return c
}

// copyLog copies to the tail, and follows it until ctx ends if it shall. From
// then on only a second signal ends it before the tail.
func copyLog(ctx context.Context, c *logcopy.Copy, follow bool, w io.Writer) error {
	err := c.ToTail(ctx)
	if follow && err == nil {
		fmt.Fprintf(w, "copying the log: at the source's tail behind %d events; a signal ends the copy there\n", c.Counts().Events)
		if err = c.Follow(ctx); err == nil {
			err = c.ToTail(context.WithoutCancel(ctx))
		}
	}
	var different *logcopy.DifferenceError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &different):
		return fmt.Errorf("--to: %w; it may have nothing but the first events of the source: name an empty log", err)
	case errors.Is(err, eventlog.ErrInvalid):
		return fmt.Errorf("--to: behind event %d: %w", c.Counts().Events, err)
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		err = errors.New("interrupted")
	}
	return fmt.Errorf("the copy is not complete, %d events are the same: %w; `leadonce log copy` with the same --from and --to goes on from there", c.Counts().Events, err)
}

func copyProgress(w io.Writer) func(uint64) {
	last := time.Now()
	return func(events uint64) {
		if time.Since(last) > time.Second {
			last = time.Now()
			fmt.Fprintf(w, "copying the log: %d events\n", events)
		}
	}
}

func writeCounts(w io.Writer, c logcopy.Counts) error {
	_, err := fmt.Fprintf(w, "%d events in %d streams are the same in both logs, %d of them copied now\n", c.Events, c.Streams, c.Events-c.Found)
	if c.Events > 0 && err == nil {
		_, err = fmt.Fprintf(w, "  from  position %s to %s\n  to    position %s to %s\n", c.Source.First, c.Source.Last, c.Target.First, c.Target.Last)
	}
	return err
}

// withLogs runs use with both logs. The target is made only when there is
// something to copy.
func withLogs(ctx context.Context, from, to string, use func(ctx context.Context, source, target eventlog.Log) error) error {
	sourceName, err := parseLogName("--from", from)
	if err != nil {
		return err
	}
	targetName, err := parseLogName("--to", to)
	if err != nil {
		return err
	}
	source, closeSource, err := openNamed(ctx, sourceName, false)
	if err != nil {
		return err
	}
	if sourceName.same(targetName) {
		return errors.Join(mistake("--to: the same log as --from; name another one"), closeSource())
	}
	target, closeTarget, err := openNamed(ctx, targetName, true)
	if err != nil {
		return errors.Join(err, closeSource())
	}
	return errors.Join(use(ctx, source, target), closeTarget(), closeSource())
}

const logForms = "sqlite:DIR, a data folder, or kurrentdb:[NAMESPACE@]esdb://…, a connection string"

// logName names a log on the command line. Its place may hold a password.
type logName struct{ flag, backend, place string }

// parseLogName's errors have nothing of s, since it may hold a password.
func parseLogName(flag, s string) (logName, error) {
	backend, place, _ := strings.Cut(s, ":")
	switch {
	case s == "":
		return logName{}, mistake("%s is needed; give %s", flag, logForms)
	case backend == logMemory:
		return logName{}, mistake("%s: memory can be seen by its own `leadonce serve` only; give %s", flag, logForms)
	case backend != logSQLite && backend != logKurrentDB || place == "":
		return logName{}, mistake("%s: not the name of a log; give %s", flag, logForms)
	}
	place, err := expand(flag, place)
	return logName{flag, backend, place}, err
}

// cluster is the place of a log on KurrentDB.
func (n logName) cluster() kurrentConfig {
	if i := strings.Index(n.place, "@esdb"); i > 0 && !strings.Contains(n.place[:i], ":") {
		return kurrentConfig{Connection: n.place[i+1:], Namespace: n.place[:i]}
	}
	return kurrentConfig{Connection: n.place}
}

func (n logName) file() string { return filepath.Join(n.place, logFile) }

// same reports whether both name one log, as far as names tell.
func (n logName) same(other logName) bool {
	if n.backend != other.backend {
		return false
	}
	if n.backend != logSQLite {
		return n.place == other.place
	}
	ours, err1 := os.Stat(n.file())
	theirs, err2 := os.Stat(other.file())
	return err1 == nil && err2 == nil && os.SameFile(ours, theirs)
}

// openNamed opens the log, and returns how to close it. create says whether one
// that is not there may be made.
func openNamed(ctx context.Context, n logName, create bool) (eventlog.Log, func() error, error) {
	discard := slog.New(slog.DiscardHandler)
	if n.backend == logKurrentDB {
		log, closeLog, err := openKurrentDB(ctx, n.cluster(), discard)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", n.flag, err)
		}
		return log, closeLog, nil
	}
	if _, err := os.Stat(n.file()); err != nil && !create {
		return nil, nil, mistake("%s: %s: no log there; name the data folder of a leadonce", n.flag, n.file())
	}
	log, closeLog, err := openLog(ctx, config{Log: n.backend, DataDir: n.place}, create, discard)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", n.flag, err)
	}
	return log, closeLog, nil
}
