package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/crmtest"
)

// certification is the report of `leadonce crm certify`, and what `serve` goes by.
type certification struct {
	Connector string           `json:"connector"` // as its file calls it
	File      string           `json:"file"`
	Host      string           `json:"host"` // of the CRM
	Program   string           `json:"program"`
	Time      time.Time        `json:"time"` // of the end
	Took      string           `json:"took"`
	Declared  crm.Class        `json:"declared"`
	Strongest crm.Class        `json:"strongest"` // that held; "" when none did
	Classes   []certifiedClass `json:"classes"`
	Leads     []certifiedLead  `json:"leads"` // that were made
}

// certifiedClass is what was shown of a class. Digest is of the description as it was
// used: the file, the class, the times, and the variables but the secret ones.
type certifiedClass struct {
	Class       crm.Class       `json:"class"`
	Digest      string          `json:"digest"`
	Settle      string          `json:"settle"`
	KeyValidity string          `json:"key_validity,omitempty"`
	Verdict     crmtest.Verdict `json:"verdict"`
	Steps       []certifiedStep `json:"steps"` // one, of a lead that takes one effect
}

type certifiedStep struct {
	Step    string          `json:"step,omitempty"`
	Class   crm.Class       `json:"class"` // that the step promises
	Verdict crmtest.Verdict `json:"verdict"`
	Why     string          `json:"why,omitempty"`
	Probes  []crmtest.Probe `json:"probes"`
}

type certifiedLead struct {
	ID        string `json:"id"`        // "" when it is not known whether it was made
	Operation string `json:"operation"` // its key
	Step      string `json:"step,omitempty"`
	Removed   bool   `json:"removed"`
}

func (c certifiedClass) why() string {
	for _, s := range c.Steps {
		if s.Verdict == c.Verdict && s.Why != "" {
			return s.Why
		}
	}
	return ""
}

func recordDir(c config) string { return filepath.Join(c.DataDir, recordFolder) }

var odd = regexp.MustCompile(`[^a-zA-Z0-9.]+`)

// fileName has the time first, so that a list of files is one of time.
func (c certification) fileName() string {
	return c.Time.UTC().Format("20060102T150405.000000000Z") + "-" + odd.ReplaceAllString(c.Connector+"-"+c.Host, "-") + ".json"
}

// save writes the report where nothing is yet, or replaces the file.
func (c certification) save(path string) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = replaceFile(path, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("the report: %w", err)
	}
	return nil
}

// clocksApart is how far the clock of another machine that certified may be ahead.
const clocksApart = time.Minute

// records are the reports in a folder. One that cannot be read is an error: it may be
// the newest.
func records(dir string) ([]certification, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, wrong("data_dir", "%v; name a folder of leadonce's own", err)
	}
	var list []certification
	for _, e := range entries {
		if e.IsDir() || filepath.Ext(e.Name()) != ".json" {
			continue
		}
		path := filepath.Join(dir, e.Name())
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var c certification
		if json.Unmarshal(text, &c) != nil || c.Time.IsZero() {
			return nil, mistake("%s is no report of `leadonce crm certify`; remove it", path)
		}
		list = append(list, c)
	}
	return list, nil
}

// trust is how far the declared class is known to be true.
type trust struct {
	certified bool
	text      string // one line, for people
}

// checkTrust is an error when the class is neither certified nor to be trusted.
func (c config) checkTrust() (trust, error) {
	t, err := c.trust()
	if err != nil || t.certified || c.CRM.TrustDeclared {
		return t, err
	}
	return t, c.sources.place(wrong("crm.class",
		"%s; run `leadonce crm certify`, or take it for true with --trust-declared (crm.trust_declared: true)", t.text))
}

// trust is what is known of the declared class.
func (c config) trust() (trust, error) {
	connector, err := newConnector(c)
	if err != nil {
		return trust{}, asMistake(err)
	}
	if promisesNothing(connector) {
		return trust{true, "class none promises nothing, and needs no certificate"}, nil
	}
	list, err := records(recordDir(c))
	if err != nil {
		return trust{}, c.sources.place(asMistake(err))
	}
	t := c.trustIn(list, connector.Describe(), identify(connector))
	if !t.certified && c.CRM.TrustDeclared {
		t.text += "; trusted as declared"
	}
	return t, nil
}

// trustIn is what the reports say of it.
func (c config) trustIn(list []certification, d crm.Description, who identity) trust {
	about := fmt.Sprintf("class %s of %s at %s", d.Class, c.CRM.Connector, who.host)
	newest, found, other := newestOf(list, d.Name, who)
	switch {
	case !found && other.IsZero():
		return trust{text: fmt.Sprintf("%s is not certified: %s has no report on it", about, recordDir(c))}
	case !found:
		return trust{text: fmt.Sprintf("%s is not certified: the newest report, of %s, is on another description, class, settle time or variable",
			about, shownTime(other))}
	case newest.at.After(time.Now().Add(clocksApart)): // and it would outweigh what is found today
		return trust{text: fmt.Sprintf("%s is not certified: the newest report in %s is of %s, which is to come; remove it",
			about, recordDir(c), shownTime(newest.at))}
	case newest.class.Verdict != crmtest.Held:
		return trust{text: fmt.Sprintf("%s was %s in the newest certification, of %s: %s", about, newest.class.Verdict, shownTime(newest.at), newest.class.why())}
	}
	return trust{true, fmt.Sprintf("%s was certified on %s", about, shownTime(newest.at))}
}

// promisesNothing reports whether no effect of a lead is ever repeated.
func promisesNothing(c crm.Connector) bool {
	return !slices.ContainsFunc(crm.StepsOf(c), func(s crm.Step) bool { return s.Connector.Describe().Class != crm.None })
}

func shownTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

type recorded struct {
	class certifiedClass
	at    time.Time
}

// newestOf is the newest verdict on the connector, and else when one of its name at
// its host was certified that is another.
func newestOf(list []certification, name string, who identity) (newest recorded, found bool, other time.Time) {
	for _, c := range list {
		if c.Host != who.host {
			continue
		}
		if c.Connector == name && c.Time.After(other) {
			other = c.Time
		}
		for _, class := range c.Classes {
			if class.Digest == who.digest && (!found || c.Time.After(newest.at)) {
				newest, found = recorded{class, c.Time}, true
			}
		}
	}
	return newest, found, other
}
