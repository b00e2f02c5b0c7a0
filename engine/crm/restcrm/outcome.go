package restcrm

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The words that a rule can end in.
const (
	created      = "created"      // a receipt, with the lead's id
	exists       = "exists"       // the lead was there, under our unique key
	notApplied   = "not_applied"  // nothing happened; a later try may succeed
	refused      = "refused"      // nothing happened, and never will
	unauthorized = "unauthorized" // nothing happened: the session is over
	unknown      = "unknown"      // it may have had its effect
	found        = "found"        // a lookup: items has the leads
	none         = "none"         // a lookup: there is no such lead
	removed      = "removed"      // a removal: the lead is gone
)

var (
	ofCreate  = []string{created, exists, notApplied, refused, unauthorized, unknown}
	ofLookup  = []string{found, none, notApplied, unauthorized}
	ofRemoval = []string{removed, notApplied, unauthorized}
)

// rule says what an answer proves. The first whose condition holds counts.
type rule struct {
	node       *node
	when       *expression
	is         string
	id         *expression
	existing   *expression // whether a created lead was there before
	retryAfter *expression
	pause      time.Duration // retry_after as a fixed time
	reason     string        // fixed words, for people
}

var reasonForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_ .,'-]{0,79}$`)

func (l *loader) rules(n *node, words, has []string) []*rule {
	if n.kind != listKind || len(n.list) == 0 {
		l.fail(n, "give a list of rules, each with when and is")
	}
	var rules []*rule
	for _, element := range n.list {
		rules = append(rules, l.rule(element, words, has))
	}
	return rules
}

func (l *loader) rule(n *node, words, has []string) *rule {
	r := &rule{node: n}
	readers := map[string]func(*node){
		"when": func(n *node) { r.when = l.expression(n, l.text(n), has, true) },
		"is":   func(n *node) { r.is = l.text(n) },
		"retry_after": func(n *node) {
			if s, _ := n.scalar.(string); durationForm.MatchString(s) {
				r.pause = l.duration(n)
				return
			}
			r.retryAfter = l.expression(n, l.text(n), has, false)
		},
		"reason": func(n *node) {
			r.reason = l.word(n, reasonForm, "give fixed words without holes: what a vendor says may hold the lead's fields")
		},
	}
	if slices.Contains(words, created) {
		readers["id"] = func(n *node) { r.id = l.expression(n, l.text(n), has, false) }
		readers["existing"] = func(n *node) { r.existing = l.expression(n, l.text(n), has, true) }
	}
	l.keys(n, readers)
	switch {
	case r.when == nil:
		l.fail(n, "when is missing; say which answers the rule is about")
	case !slices.Contains(words, r.is):
		l.fail(n, "is has no such word; give one of %s", strings.Join(words, ", "))
	case r.is == created && r.id == nil:
		l.fail(n, "id is missing; say where the answer has it, for a lead without an id is no proof of one")
	case r.id != nil && r.is != created && r.is != exists, r.existing != nil && r.is != created:
		l.fail(n, "id belongs to %[1]s and %[2]s, and existing to %[1]s; leave out what does not", created, exists)
	case (r.retryAfter != nil || r.pause > 0) && !slices.Contains([]string{notApplied, unknown, unauthorized}, r.is):
		l.fail(n, "retry_after belongs to %s, %s and %s; leave it out", notApplied, unknown, unauthorized)
	}
	return r
}

var durationForm = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?(ms|s|m|h)$`)

// first is the rule that an answer meets; nil for none. An error says that a
// condition before it could not be evaluated: then nothing is proven.
func first(rules []*rule, env map[string]any) (*rule, error) {
	for _, r := range rules {
		holds, err := r.when.truth(env)
		if err != nil {
			return r, err
		}
		if holds {
			return r, nil
		}
	}
	return nil, nil
}

// says is the reason of an answer, in words that the file fixes.
func (r *rule) says(status int, otherwise string) string {
	if r != nil && r.reason != "" {
		otherwise = r.reason
	}
	return fmt.Sprintf("HTTP %d %s", status, otherwise)
}
