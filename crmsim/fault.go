package crmsim

import (
	"fmt"
	"slices"
)

// A Fault is one way in which the CRM, or the network before it, misbehaves on one request.
// The package comment says what each does and where it is in the default spread.
type Fault string

const (
	NoFault Fault = "none"

	ResetConnection Fault = "reset_connection"
	CutBefore       Fault = "cut_before"
	CutAfter        Fault = "cut_after"
	HangThenApply   Fault = "hang_then_apply"

	RateLimited       Fault = "rate_limited"
	RateLimitedDate   Fault = "rate_limited_date"
	RateLimitedAbsent Fault = "rate_limited_absent"
	RateLimitedPast   Fault = "rate_limited_past"
	RateLimitedFar    Fault = "rate_limited_far"

	ErrorBefore       Fault = "error_before"
	ErrorAfter        Fault = "error_after"
	NotExecuted       Fault = "not_executed"
	UnavailableBefore Fault = "unavailable_before"
	UnavailableAfter  Fault = "unavailable_after"

	OKWithoutID       Fault = "ok_without_id"
	OKWithErrorBefore Fault = "ok_with_error_before"
	OKWithErrorAfter  Fault = "ok_with_error_after"
	OKHTMLBefore      Fault = "ok_html_before"
	OKHTMLAfter       Fault = "ok_html_after"
	BadRequestAfter   Fault = "bad_request_after"
	AcceptedLater     Fault = "accepted_later"
	LoginRedirect     Fault = "login_redirect"

	LookupLags Fault = "lookup_lags"
	KeyIgnored Fault = "key_ignored"
	Duplicated Fault = "duplicated"
)

// An Op is what a request to the CRM asks for. An upsert is a create.
type Op string

const (
	Create Op = "create"
	Find   Op = "find"
)

// timing says when the effect of a request happens under a fault.
type timing int

const (
	once     timing = iota // at once, then the answer
	never                  // not at all
	held                   // after Config.Hang, and the answer after it
	deferred               // after Config.Hang, and the answer at once
	twice                  // at once, and at once again
)

// behaviour is the row of one fault: on which operations it can act, when the effect happens,
// what becomes of the truthful reply, and for which classes it belongs to the default spread.
type behaviour struct {
	fault  Fault
	ops    []Op
	effect timing
	answer func(conditions, reply) reply
	spread func(Class) bool
}

var (
	creates = []Op{Create}
	finds   = []Op{Find}
	both    = []Op{Create, Find}
)

func every(Class) bool   { return true }
func nowhere(Class) bool { return false }

var behaviours = []behaviour{
	{NoFault, both, once, truthful, nowhere},
	{ResetConnection, both, never, reset, every},
	{CutBefore, both, never, cut, every},
	{CutAfter, creates, once, cut, every},
	{HangThenApply, both, held, truthful, every},
	{RateLimited, both, never, rateLimited, every},
	{RateLimitedDate, both, never, rateLimitedDate, every},
	{RateLimitedAbsent, both, never, rateLimitedAbsent, every},
	{RateLimitedPast, both, never, rateLimitedPast, every},
	{RateLimitedFar, both, never, rateLimitedFar, nowhere},
	{ErrorBefore, both, never, serverError, every},
	{ErrorAfter, creates, once, serverError, every},
	{NotExecuted, both, never, notExecuted, every},
	{UnavailableBefore, both, never, unavailable, every},
	{UnavailableAfter, creates, once, unavailable, every},
	{OKWithoutID, creates, once, okWithoutID, every},
	{OKWithErrorBefore, both, never, okWithError, every},
	{OKWithErrorAfter, creates, once, okWithError, every},
	{OKHTMLBefore, both, never, okHTML, every},
	{OKHTMLAfter, creates, once, okHTML, every},
	{BadRequestAfter, creates, once, badRequest, every},
	{AcceptedLater, creates, deferred, truthful, every},
	{LoginRedirect, both, never, loginRedirect, every},
	{LookupLags, finds, once, truthful, Class.CanFind},
	{KeyIgnored, creates, once, truthful, nowhere},
	{Duplicated, creates, twice, truthful, Class.deduplicates},
}

// Faults lists every fault, NoFault first.
func Faults() []Fault {
	names := make([]Fault, len(behaviours))
	for i, b := range behaviours {
		names[i] = b.fault
	}
	return names
}

// Spread lists the faults over which Config.Faults is spread for an operation: those that leave a
// correct client of the class able to end with one lead per external id.
func Spread(class Class, op Op) []Fault {
	var names []Fault
	for _, b := range behaviours {
		if b.spread(class) && b.possible(class, op) {
			names = append(names, b.fault)
		}
	}
	return names
}

// possible reports whether the fault can act on the operation in a CRM of the class.
func (b behaviour) possible(class Class, op Op) bool {
	if op == Find && !class.CanFind() {
		return false
	}
	if b.fault == KeyIgnored && class != IdempotencyKey {
		return false
	}
	return slices.Contains(b.ops, op)
}

var behaviourOf = func() map[Fault]behaviour {
	byName := map[Fault]behaviour{}
	for _, b := range behaviours {
		byName[b.fault] = b
	}
	return byName
}()

func checkPossible(fault Fault, class Class, ops ...Op) error {
	b, known := behaviourOf[fault]
	if !known {
		return fmt.Errorf("fault %q is not known: use one of %s", fault, joined(Faults()))
	}
	for _, op := range ops {
		if b.possible(class, op) {
			return nil
		}
	}
	return fmt.Errorf("fault %q cannot act on a %s of class %s: leave it out", fault, joined(ops), class)
}
