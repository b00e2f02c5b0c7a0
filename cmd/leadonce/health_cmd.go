package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// healthTimeout is how long a process has to answer: the time that its own checks
// have, and as much again.
const healthTimeout = 10 * time.Second

func healthCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "health [URL]",
		Short: "Ask a running leadonce whether it is ready; exit 1 when it is not",
		Long: "Ask a running leadonce whether it is ready: GET /readyz at the address that the configuration\n" +
			"listens on, or URL. It is for containers, whose image has no other program that could ask.",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return mistake("leadonce health takes at most one URL; see `leadonce health --help`")
			}
			return nil
		},
	}
	read := withConfig(c)
	alive := c.Flags().Bool("alive", false, "ask only whether it runs: GET /healthz")
	c.RunE = func(c *cobra.Command, args []string) error {
		var target string
		switch {
		case len(args) == 1 && *alive:
			return mistake("--alive: the URL says already what is asked; give one of the two")
		case len(args) == 1:
			target = args[0]
		default:
			config, err := read()
			if err != nil {
				return err
			}
			if target, err = healthURL(config, *alive); err != nil {
				return err
			}
		}
		if err := askHealth(c.Context(), target); err != nil {
			return err
		}
		_, err := fmt.Fprintf(c.OutOrStdout(), "%s: ok\n", target)
		return err
	}
	return c
}

// healthURL is where the process with that configuration answers.
func healthURL(c config, alive bool) (string, error) {
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return "", c.sources.place(wrong("listen", "%q is no address; give HOST:PORT", c.Listen))
	}
	if address, err := netip.ParseAddr(host); host == "" || err == nil && address.IsUnspecified() {
		host = "127.0.0.1" // every address of this machine, so this one too
		if address.Is6() {
			host = "::1"
		}
	}
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(host, port), Path: "/readyz"}
	if c.TLS.CertFile != "" {
		u.Scheme = "https"
	}
	if alive {
		u.Path = "/healthz"
	}
	return u.String(), nil
}

// askHealth is an error unless target answers 200.
func askHealth(ctx context.Context, target string) error {
	u, err := url.Parse(target)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return mistake("URL: give an http or https address without a login, such as http://127.0.0.1:8080/readyz")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return err // what can be parsed can be asked
	}
	client := http.Client{
		Timeout:       healthTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		// The certificate is of the name that the world uses, and this asks by
		// address. No secret is sent.
		Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
	}
	response, err := client.Do(request)
	var failure *url.Error
	if errors.As(err, &failure) {
		err = failure.Err // the address stands before it
	}
	if err != nil {
		return fmt.Errorf("%s: no answer: %w", target, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s%s", target, response.Status, failedChecks(response.Body))
	}
	return nil
}

// failedChecks words what a readiness report says is wrong; nothing for another
// document.
func failedChecks(body io.Reader) string {
	var report struct {
		Checks []struct {
			Name   string `json:"name"`
			OK     bool   `json:"ok"`
			Detail string `json:"detail"`
		} `json:"checks"`
	}
	if json.NewDecoder(io.LimitReader(body, 64<<10)).Decode(&report) != nil {
		return ""
	}
	var words strings.Builder
	for _, c := range report.Checks {
		if !c.OK {
			fmt.Fprintf(&words, "; %s: %q", c.Name, c.Detail)
		}
	}
	return words.String()
}
