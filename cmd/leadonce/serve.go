package main

import (
	"fmt"
	"net"

	"github.com/spf13/cobra"
)

func serveCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "serve",
		Short: "Accept updates and make leads, until SIGTERM or Ctrl-C",
		Args:  noArgs,
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
		scheme := "http"
		if config.TLS.CertFile != "" {
			scheme = "https"
		}
		logger.Info("serving", "address", fmt.Sprintf("%s://%s", scheme, listener.Addr()),
			"role", config.Role, "bots", len(config.Bots), "log", config.Log, "data_dir", config.DataDir,
			"crm", config.CRM.Connector, "class", config.CRM.Class, "workers", config.Workers)
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
