package kurrentdbtest

import (
	"regexp"
	"slices"
	"strings"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
)

// filter says which records a reader of $all is given.
type filter func(*record) bool

// visibleInAll is EventFilter.DefaultAllFilter: nobody sees the checkpoints and
// parked messages of persistent subscriptions to $all, and the epochs.
func visibleInAll(r *record) bool {
	const persistent = "$persistentsubscription-$all::"
	if !strings.HasPrefix(r.Stream, "$") {
		return true
	}
	ends := strings.HasSuffix(r.Stream, "-checkpoint") || strings.HasSuffix(r.Stream, "-parked")
	return r.Stream != "$epoch-information" && !(strings.HasPrefix(r.Stream, persistent) && ends)
}

// filterOf reads the filter of a request. A regular expression wins over
// prefixes; it is one of Go here and one of .NET on the server.
func filterOf(o *streams.ReadReq_Options_FilterOptions) (filter, error) {
	var expression *streams.ReadReq_Options_FilterOptions_Expression
	subject := func(r *record) string { return r.Stream }
	switch f := o.GetFilter().(type) {
	case *streams.ReadReq_Options_FilterOptions_StreamIdentifier:
		expression = f.StreamIdentifier
	case *streams.ReadReq_Options_FilterOptions_EventType:
		expression = f.EventType
		subject = func(r *record) string { return r.Type }
	default:
		return nil, errInvalidArgument("the filter names neither streams nor event types")
	}
	matches := func(text string) bool {
		return slices.ContainsFunc(expression.GetPrefix(), func(p string) bool { return strings.HasPrefix(text, p) })
	}
	if pattern := expression.GetRegex(); pattern != "" {
		compiled, err := regexp.Compile(pattern)
		if err != nil {
			return nil, errHandler
		}
		matches = compiled.MatchString
	}
	return func(r *record) bool { return visibleInAll(r) && matches(subject(r)) }, nil
}

// windowOf is how many records a page of a filtered read looks at.
func windowOf(o *streams.ReadReq_Options_FilterOptions) (int64, error) {
	switch w := o.GetWindow().(type) {
	case *streams.ReadReq_Options_FilterOptions_Max:
		return int64(w.Max), nil
	case *streams.ReadReq_Options_FilterOptions_Count:
		return pageSize, nil
	}
	return 0, errInvalidArgument("'None' is not a valid WindowOneofCase")
}
