package main

import (
	"fmt"
	"net"
	"path/filepath"

	"github.com/spf13/cobra"
)

func serveCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "serve",
		Short: "Accept updates and make leads, until SIGTERM or Ctrl-C",
		Long: "Accept updates and make leads, until SIGTERM or Ctrl-C.\n\n" +
			"The bots' tokens, which --poll and replies need, are in the environment: TELEGRAM_BOT_TOKEN_<bot id>\n" +
			"or TELEGRAM_BOT_TOKEN. TELEGRAM_API_URL is the address of a local Bot API server, if there is one.",
		Args: noArgs,
	}
	read := withConfig(c)
	poll := c.Flags().Bool("poll", false, "fetch updates by long polling instead of having them delivered")
	trust := c.Flags().Bool("trust-declared", false, "take the declared class of the CRM for true without a certificate of leadonce crm certify")
	c.RunE = func(c *cobra.Command, _ []string) error {
		config, err := read()
		if err != nil {
			return err
		}
		config.Poll = config.Poll || *poll
		config.CRM.TrustDeclared = config.CRM.TrustDeclared || *trust
		if err := config.check(); err != nil {
			return err
		}
		logger := newLogger(c.ErrOrStderr(), config.Logging)
		// The address first: a port that is taken should not open a log.
		listener, err := net.Listen("tcp", config.Listen)
		if err != nil {
			return mistake("listen: %v; stop the other process, or choose another address", err)
		}
		a, err := newApp(c.Context(), config, logger)
		if err != nil {
			listener.Close()
			return err
		}
		a.tellServing(listener.Addr())
		a.tellTrust()
		if config.Log == logMemory {
			logger.Warn("log: memory keeps nothing over a restart; use it for trials only")
		}
		if err := a.run(c.Context(), listener); err != nil {
			return err
		}
		logger.Info("stopped")
		return nil
	}
	return c
}

// tellServing says in the log what serves, and from where.
func (a *app) tellServing(address net.Addr) {
	c := a.config
	scheme := "http"
	if c.TLS.CertFile != "" {
		scheme = "https"
	}
	updates := "delivered"
	switch {
	case c.Role == roleWorker:
		updates = "none taken"
	case c.Poll:
		updates = "fetched by long polling"
	}
	a.logger.Info("serving", "address", fmt.Sprintf("%s://%s", scheme, address),
		"role", c.Role, "bots", len(c.Bots), "updates", updates, "log", c.Log, "data_dir", absolute(c.DataDir),
		"crm", c.CRM.Connector, "class", c.CRM.Class, "workers", c.Workers)
}

// absolute is the path from the root: one in a log must not depend on where the
// process was started.
func absolute(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}
