package crmtest

import (
	"context"
	"fmt"
	"slices"
	"testing"
)

// Rule is what a finding breaks.
type Rule string

// The rules: those of package crm, and the promise of the class.
const (
	C1    Rule = "C1"
	C2    Rule = "C2"
	C3    Rule = "C3"
	C4    Rule = "C4"
	C5    Rule = "C5"
	C6    Rule = "C6"
	CLASS Rule = "CLASS"
)

// Finding is one breach of a rule.
type Finding struct {
	Rule    Rule
	Case    string
	Problem string
}

func (f Finding) String() string { return fmt.Sprintf("%s in %s: %s", f.Rule, f.Case, f.Problem) }

// Check runs every case and returns what it found; nothing means: conformant.
func Check(ctx context.Context, subject Subject) []Finding {
	subject = subject.WithDefaults()
	var findings []Finding
	for _, c := range casesOf(subject) {
		findings = append(findings, c.check(ctx, subject)...)
	}
	return findings
}

// Run is Check as a test, with a subtest for every case.
func Run(t *testing.T, subject Subject) {
	subject = subject.WithDefaults()
	for _, c := range casesOf(subject) {
		t.Run(c.name, func(t *testing.T) {
			for _, f := range c.check(t.Context(), subject) {
				t.Errorf("%s: %s", f.Rule, f.Problem)
			}
		})
	}
}

type testCase struct {
	name string
	run  func(*scene)
}

func casesOf(subject Subject) []testCase {
	return slices.Concat(
		[]testCase{
			{"describes_itself", describesItself},
			{"vendor_is_described", vendorIsDescribed},
			{"lead_carries_the_operation_id", leadCarriesID},
			{"find_answers_what_exists", findAnswersWhatExists},
			{"deadline_is_over", deadlineIsOver},
			{"nothing_listens", nothingListens},
			{"context_is_over", contextIsOver},
			{"kept_connection_closed_as_the_create_goes_out", keptConnection},
			{"create_repeated_after_a_cut_answer", repeatAfterCut},
			{"concurrent_creates_of_one_operation", concurrentCreates},
		},
		ambiguousCreates(), vendorCreates(subject.Answers),
		unreadableSearches(), vendorSearches(subject.Searches),
	)
}

func (c testCase) check(ctx context.Context, subject Subject) []Finding {
	s := &scene{ctx: ctx, subject: subject, name: c.name}
	defer s.close()
	if err := s.open(); err != nil {
		s.found(CLASS, "the case cannot start: %v", err)
		return s.findings
	}
	c.run(s)
	return s.findings
}
