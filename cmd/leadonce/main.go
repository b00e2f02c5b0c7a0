// Command leadonce takes enquiries from Telegram bots and makes each of them one
// lead in a CRM, once. `leadonce help` lists the subcommands.
//
// Exit status: 0 done; 1 it failed, or an audit or demo found something wrong;
// 2 wrong usage or a mistake in the configuration.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit statuses.
const (
	exitOK    = 0
	exitFail  = 1
	exitUsage = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// errFound ends a command with exit status 1 whose findings are printed already.
var errFound = errors.New("something was found")

// run is the program; tests call it too.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if errors.Is(err, errFound) {
		return exitFail
	}
	fmt.Fprintf(stderr, "leadonce: %v\n", err)
	if errors.As(err, new(*configError)) {
		return exitUsage
	}
	return exitFail
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "leadonce",
		Short:         "Every Telegram enquiry once in the CRM",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return mistake("%v; see `%s --help`", err, c.CommandPath())
	})
	root.AddCommand(
		serveCommand(), initCommand(), configCommand(), crmCommand(), rulesCommand(), webhookCommand(), jobCommand(), auditCommand(), logCommand(),
		projectionsCommand(), crmsimCommand(), healthCommand(), demoCommand(), simulateCommand(), versionCommand(),
	)
	return root
}

// noArgs and exactArgs are cobra's, as mistakes in usage.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return mistake("unknown command or argument %q; see `%s --help`", args[0], c.CommandPath())
	}
	return nil
}

func exactArgs(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return mistake("%s takes %v; see `%s --help`", c.CommandPath(), names, c.CommandPath())
		}
		return nil
	}
}

// withConfig gives a command the flags of the configuration, and returns how to
// read it.
func withConfig(c *cobra.Command) func() (config, error) {
	path := c.Flags().String("config", envOr("LEADONCE_CONFIG", "leadonce.yaml"), "configuration file")
	values := map[string]*string{}
	for _, o := range overridable {
		values[o.key] = c.Flags().String(o.flag(), "", fmt.Sprintf("%s (overrides %s in the file and %s)", o.usage, o.key, o.env()))
	}
	return func() (config, error) {
		overrides := map[string]string{}
		for key, value := range values {
			overrides[key] = *value
		}
		return readConfig(*path, overrides)
	}
}

func envOr(name, standard string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return standard
}
