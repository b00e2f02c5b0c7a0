package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
)

//go:embed leadonce.yaml
var sampleConfig []byte

func initCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write a commented configuration (default leadonce.yaml)",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return mistake("leadonce init takes at most one FILE; see `leadonce init --help`")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			path := "leadonce.yaml"
			if len(args) == 1 {
				path = args[0]
			}
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if errors.Is(err, fs.ErrExist) {
				return mistake("%s is there already; name another file, or remove it", path)
			}
			if err != nil {
				return mistake("%v", err)
			}
			defer f.Close()
			if _, err := f.Write(sampleConfig); err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "%s is written. Next: set bots and crm in it, then `leadonce config check`\n", path)
			return f.Close()
		},
	}
}

func configCommand() *cobra.Command {
	parent := &cobra.Command{Use: "config", Short: "Look at the configuration", Args: noArgs, RunE: help}
	check := &cobra.Command{Use: "check", Short: "Check the configuration and say what it means", Args: noArgs}
	read := withConfig(check)
	check.RunE = func(c *cobra.Command, _ []string) error {
		config, err := read()
		if err != nil {
			return err
		}
		if err := config.check(); err != nil {
			return err
		}
		out := c.OutOrStdout()
		fmt.Fprintln(out, "ok")
		for _, b := range config.Bots {
			if config.Poll {
				fmt.Fprintf(out, "bot %d: its updates are fetched by long polling\n", b.ID)
				continue
			}
			fmt.Fprintf(out, "bot %d: deliveries to POST /telegram/%d on %s, %d secret(s)\n", b.ID, b.ID, config.Listen, len(b.Secrets))
		}
		if len(config.replyBots) > 0 {
			fmt.Fprintf(out, "replies: %s; within %s\n", toldOutcomes(config), config.Reply.Within)
		}
		fmt.Fprintf(out, "role: %s\ncrm: %s, class %s\nlog: %s, data in %s\n", config.Role, config.CRM.Connector, config.CRM.Class, config.Log, config.DataDir)
		connector, err := newConnector(config)
		if err != nil {
			return asMistake(err)
		}
		if warning := clearText(connector); warning != "" {
			fmt.Fprintf(out, "warning: %s\n", warning)
		}
		t, err := config.trust()
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "proof: %s\n", t.text)
		return nil
	}
	parent.AddCommand(check)
	return parent
}

func help(c *cobra.Command, _ []string) error { return c.Help() }
