package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/crmtest"
)

func crmCommand() *cobra.Command {
	parent := &cobra.Command{Use: "crm", Short: "Prove what a CRM promises", Args: noArgs, RunE: help}
	parent.AddCommand(crmCertifyCommand())
	return parent
}

// certifyFlags are what `crm certify` is told beside the configuration.
type certifyFlags struct {
	url, class, report    string
	settle, keyValidity   time.Duration
	vars, fields, refused map[string]string
	waitExpiry, yes       bool
	soak, patience        time.Duration
}

func crmCertifyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "certify [FILE]",
		Short: "Prove on a sandbox what a CRM promises about a create that is sent twice",
		Long: "Makes leads in a CRM and shows which classes hold: creates at once with one key, a create repeated\n" +
			"after its answer was cut, a key with another body, the end of a key's validity, lookups immediately\n" +
			"and after the settle time, a create that is refused. Use a sandbox: some ten leads are made for each\n" +
			"class, and more in one that lies. They are removed if the description says how (`remove`), and listed if not.\n\n" +
			"FILE is a leadonce.yaml, whose crm section counts, or a description of a CRM: a file of yours, or the\n" +
			"name of one that comes with the program. Without FILE it is the configuration. Of a configuration the\n" +
			"class that it declares is tried, of a description every class that it has.\n\n" +
			"The report is kept in DATA_DIR/certifications. `serve` starts with a class only if it held in the\n" +
			"newest report about the same description, class, times and variables at the same host: certify with\n" +
			"the --settle that you serve with, and not beside a `serve` that refreshes tokens of the same account.\n\n" +
			"Exit status 0 only when the declared class held.",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return mistake("%s takes at most one FILE; see `%s --help`", c.CommandPath(), c.CommandPath())
			}
			return nil
		},
	}
	read, out := withConfig(c), withOutput(c)
	var f certifyFlags
	c.Flags().StringVar(&f.url, "url", "", "where the CRM is (default: as the file says)")
	c.Flags().StringVar(&f.class, "class", "", "the class to try, or all that the description has")
	c.Flags().DurationVar(&f.settle, "settle", 0, "settle time (default: as the file says)")
	c.Flags().DurationVar(&f.keyValidity, "key-validity", 0, "how long a key is remembered (default: as the file says)")
	c.Flags().StringToStringVar(&f.vars, "var", nil, "NAME=VALUE, a variable of the description; secrets belong in the environment")
	c.Flags().StringToStringVar(&f.fields, "field", nil, "NAME=VALUE, a field of the leads to make")
	c.Flags().StringToStringVar(&f.refused, "refused", nil, "NAME=VALUE, a field with which the CRM refuses a lead (default reject=yes, which crmsim refuses)")
	c.Flags().BoolVar(&f.waitExpiry, "wait-expiry", false, "wait for the end of a key's validity, however long it is (else up to a minute)")
	c.Flags().DurationVar(&f.soak, "soak", time.Minute, "how old the first create must be when it is repeated: a CRM may only know what is fresh")
	c.Flags().DurationVar(&f.patience, "timeout", 30*time.Second, "the longest wait for one request")
	c.Flags().StringVar(&f.report, "report", "", "write the report to this file, and not where serve looks for it")
	c.Flags().BoolVar(&f.yes, "yes", false, "make leads in a CRM that is not on this machine")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := out.check(); err != nil {
			return err
		}
		config, classes, err := f.subject(c, args, read)
		if err != nil {
			return err
		}
		return f.run(c, out, config, classes)
	}
	return c
}

// subject is the configuration whose CRM is certified, and the classes to try. That
// the configuration declares is the first.
func (f certifyFlags) subject(c *cobra.Command, args []string, read func() (config, error)) (config, []crm.Class, error) {
	if len(args) == 1 && isConfiguration(args[0]) {
		if err := c.Flags().Set("config", args[0]); err != nil {
			return config{}, nil, err
		}
		args = nil
	}
	config, err := read()
	if len(args) == 1 {
		if config, err = f.around(c, config, err); err != nil {
			return config, nil, err
		}
		config.CRM, config.sources = crmConfig{Connector: args[0]}, defaultConfig().sources
	}
	if err != nil {
		return config, nil, err
	}
	classes, err := f.lay(&config)
	if err != nil {
		return config, nil, config.sources.place(err)
	}
	if f.class == "" && len(args) == 0 {
		classes = classes[:1]
	}
	return config, classes, config.sources.place(config.resolveCRM())
}

// around is the configuration around a description: only its folder counts, and it
// need not be there.
func (f certifyFlags) around(c *cobra.Command, read config, err error) (config, error) {
	if path := c.Flags().Lookup("config"); err != nil && !path.Changed {
		if _, missing := os.Stat(path.Value.String()); errors.Is(missing, os.ErrNotExist) {
			read, err = defaultConfig(), nil
			if dir := c.Flags().Lookup("data-dir"); dir.Changed {
				read.DataDir = dir.Value.String()
			} else {
				read.DataDir = envOr("LEADONCE_DATA_DIR", read.DataDir)
			}
		}
	}
	return read, err
}

// lay lays the flags over the configuration, and returns the classes to try.
func (f certifyFlags) lay(config *config) ([]crm.Class, error) {
	d, err := describedCRM(config.CRM.Connector)
	if err != nil {
		return nil, asMistake(err)
	}
	to := &config.CRM
	if f.url != "" {
		to.URL = f.url
	}
	if f.settle != 0 {
		to.Settle = f.settle
	}
	if f.keyValidity != 0 {
		to.KeyValidity = f.keyValidity
	}
	if len(f.vars) > 0 {
		vars := map[string]string{}
		maps.Copy(vars, to.Vars)
		maps.Copy(vars, f.vars)
		to.Vars = vars
	}
	classes := d.Classes()
	if to.Class == "" {
		to.Class = string(classes[0])
	}
	if f.class != "" && f.class != "all" {
		class, err := crm.ParseClass(f.class)
		if err != nil {
			return nil, mistake("--class: %v, or all", err)
		}
		to.Class, classes = f.class, []crm.Class{class}
	}
	declared := crm.Class(to.Class)
	return append([]crm.Class{declared}, slices.DeleteFunc(classes, func(c crm.Class) bool { return c == declared })...), nil
}

// isConfiguration reports whether the file is a leadonce.yaml: it has a crm section,
// which no description has.
func isConfiguration(path string) bool {
	text, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "crm:") {
			return true
		}
	}
	return false
}

func (f certifyFlags) run(c *cobra.Command, out output, config config, classes []crm.Class) error {
	declared, err := newConnector(config)
	if err != nil {
		return asMistake(err)
	}
	base := declared.Base()
	report := certification{
		Connector: declared.Describe().Name, File: config.CRM.Connector, Host: base.Host,
		Program: programVersion(), Declared: crm.Class(config.CRM.Class),
	}
	told := c.ErrOrStderr()
	fmt.Fprintf(told, "certify makes leads in %s, some ten for each class; %s\n", base.Host, afterwards(declared))
	if !f.yes && !onLoopback(base) {
		return mistake("--yes: %s is not on this machine; give --yes if it is a sandbox in which leads may be made", base.Host)
	}
	began := time.Now()
	certificate, err := crmtest.Certify(c.Context(), crmtest.Candidate{
		Connect: func(url string, class crm.Class) (crm.Connector, error) {
			through := config
			through.CRM.URL, through.CRM.Class = url, string(class)
			return newConnector(through)
		},
		URL: base.String(), Classes: classes, Fields: f.fields, Refused: f.refused,
		WaitExpiry: f.waitExpiry, Soak: f.soak, Patience: f.patience,
		Progress: func(text string) { fmt.Fprintf(told, "%6s  %s\n", time.Since(began).Round(100*time.Millisecond), text) },
	})
	report.Time, report.Took = time.Now(), time.Since(began).Round(100*time.Millisecond).String()
	if failure := report.fill(config, certificate); failure != nil {
		return failure
	}
	if err != nil {
		if len(report.Leads) > 0 {
			report.writeLeads(told)
		}
		if errors.Is(err, context.Canceled) {
			return errors.New("interrupted: nothing is recorded")
		}
		return err
	}
	path := f.report
	if path == "" {
		path = filepath.Join(recordDir(config), report.fileName())
	}
	if err := report.save(path); err != nil {
		return err
	}
	return report.print(c.OutOrStdout(), out, path)
}

// afterwards says what becomes of the leads that are made.
func afterwards(c crm.Connector) string {
	steps := crm.StepsOf(c)
	var removed []string
	for _, s := range steps {
		if r, ok := s.Connector.(crmtest.Remover); ok && r.CanRemove() {
			removed = append(removed, s.Name)
		}
	}
	switch len(removed) {
	case len(steps):
		return "it removes them at the end"
	case 0:
		return "it cannot remove them, and lists them at the end"
	default:
		return "at the end it removes what the steps " + strings.Join(removed, ", ") + " made, and lists the rest"
	}
}

// onLoopback reports whether the CRM is on this machine.
func onLoopback(base *url.URL) bool {
	address, err := netip.ParseAddr(base.Hostname())
	return err == nil && address.IsLoopback() || base.Hostname() == "localhost"
}

// fill takes the results over, with what each class was tried as.
func (c *certification) fill(config config, from crmtest.Certificate) error {
	c.Strongest = from.Strongest()
	c.Leads = []certifiedLead{}
	for _, r := range from.Results {
		if n := len(c.Classes); n == 0 || c.Classes[n-1].Class != r.Class {
			config.CRM.Class = string(r.Class)
			connector, err := newConnector(config)
			if err != nil {
				return err
			}
			d := connector.Describe()
			class := certifiedClass{Class: r.Class, Digest: connector.Digest(), Settle: d.Settle.String(), Verdict: from.Of(r.Class)}
			if d.KeyValidity > 0 {
				class.KeyValidity = d.KeyValidity.String()
			}
			c.Classes = append(c.Classes, class)
		}
		step := certifiedStep{Step: r.Step, Class: r.Promise, Verdict: r.Verdict, Why: r.Why, Probes: append([]crmtest.Probe{}, r.Probes...)}
		class := &c.Classes[len(c.Classes)-1]
		class.Steps = append(class.Steps, step)
		for _, l := range r.Leads {
			c.Leads = append(c.Leads, certifiedLead{l.CRMID, l.Operation, r.Step, l.Removed})
		}
	}
	return nil
}

// print tells the verdicts and the evidence. It is errFound unless the declared class
// held.
func (c certification) print(w io.Writer, out output, path string) error {
	var held bool
	for _, class := range c.Classes {
		held = held || class.Class == c.Declared && class.Verdict == crmtest.Held
	}
	if out.json() {
		if err := writeJSON(w, c); err != nil {
			return err
		}
	} else {
		c.write(w)
		fmt.Fprintf(w, "report: %s\n", path)
	}
	if !held {
		return errFound
	}
	return nil
}

func (c certification) write(w io.Writer) {
	for _, class := range c.Classes {
		for _, s := range class.Steps {
			title := "class " + string(class.Class)
			if s.Step != "" {
				title += ", step " + s.Step + " as " + string(s.Class)
			}
			fmt.Fprintf(w, "%s: %s\n", title, s.Verdict)
			for _, p := range s.Probes {
				fmt.Fprintf(w, "  %-9s  %-30s  %s\n", p.Verdict, p.Name, p.Evidence)
			}
		}
	}
	c.writeLeads(w)
	strongest := "none"
	if c.Strongest != "" {
		strongest = string(c.Strongest)
	}
	fmt.Fprintf(w, "strongest class that held: %s; declared: %s\n", strongest, c.Declared)
}

// writeLeads lists what is left of what was made.
func (c certification) writeLeads(w io.Writer) {
	removed := 0
	for _, l := range c.Leads {
		if l.Removed {
			removed++
		}
	}
	fmt.Fprintf(w, "leads: %d made, %d of them removed\n", len(c.Leads), removed)
	for _, l := range c.Leads {
		switch {
		case l.Removed:
		case l.ID == "":
			fmt.Fprintf(w, "  perhaps one of operation %s\n", l.Operation)
		default:
			fmt.Fprintf(w, "  left: %s, of operation %s\n", strings.TrimSpace(l.Step+" "+l.ID), l.Operation)
		}
	}
}
