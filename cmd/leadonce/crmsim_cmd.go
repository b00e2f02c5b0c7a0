package main

import (
	"errors"
	"fmt"
	"net"

	"github.com/spf13/cobra"

	"github.com/leadonce/leadonce/crmsim"
)

func crmsimCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "crmsim",
		Short: "Run a simulated CRM that misbehaves on purpose",
		Long: "Run a simulated CRM that misbehaves on purpose, and keeps a journal of what it did.\n" +
			"GET /oracle/effects lists the leads that exist; `go doc ./crmsim` describes the rest.",
		Args: noArgs,
	}
	var config crmsim.Config
	listen := c.Flags().String("listen", "127.0.0.1:9090", "address to listen on; loopback only, without --allow-remote")
	class := c.Flags().String("class", "lookup", "idempotency_key, upsert, unique_create, lookup or none")
	c.Flags().Float64Var(&config.Faults, "faults", 0, "share of requests that meet a fault, 0 to 1")
	c.Flags().Uint64Var(&config.Seed, "seed", 1, "decides which faults are drawn")
	c.Flags().DurationVar(&config.KeyValidity, "key-validity", 0, "how long an idempotency key is remembered (default 24h)")
	c.Flags().DurationVar(&config.Hang, "hang", 0, "how late a late effect comes (default 20s)")
	c.Flags().DurationVar(&config.IndexLag, "index-lag", 0, "age below which a lagging lookup misses a lead (default 5s)")
	c.Flags().DurationVar(&config.RetryAfter, "retry-after", 0, "the wait that a 429 asks for (default 1s)")
	c.Flags().BoolVar(&config.AllowRemote, "allow-remote", false, "listen on any address, as in a container; it asks nobody who they are")
	c.Flags().StringVar(&config.JournalPath, "journal", "", "file of JSON lines that outlives the process (default: memory only)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		var err error
		if config.Class, err = crmsim.ParseClass(*class); err != nil {
			return mistake("--class: %v", err)
		}
		if err := config.Validate(); err != nil {
			return mistake("%v", err)
		}
		s, err := crmsim.New(config)
		if err != nil {
			return err
		}
		listener, err := net.Listen("tcp", *listen)
		if err != nil {
			return mistake("--listen: %v; stop the other process, or choose another address", err)
		}
		fmt.Fprintf(c.ErrOrStderr(), "crmsim: class %s, faults %g, on http://%s; its leads: GET /oracle/effects\n", config.Class, config.Faults, listener.Addr())
		return errors.Join(s.Serve(c.Context(), listener), s.Close())
	}
	return c
}
