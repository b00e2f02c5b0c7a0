package eventlogtest_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
)

// breakages is one row for each way to be wrong.
var breakages = map[string]breakage{
	"accepts_zero_expected_as_any":     {guarantee: "G00", log: appending(zeroExpectedIsAny)},
	"splits_what_is_too_much":          {guarantee: "G00", log: appending(splitsTooMany)},
	"reads_any_name":                   {guarantee: "G00", log: readsAnyName},
	"appends_one_event_at_a_time":      {guarantee: "G01", log: appending(oneAtATime)},
	"conflict_adds_the_first_event":    {guarantee: "G01", log: appending(conflictAddsFirst)},
	"reopen_loses_the_newest":          {guarantee: "G02", reopen: reopenLosesNewest},
	"reopen_moves_positions":           {guarantee: "G02", reopen: reopenMovesPositions},
	"acknowledges_before_it_writes":    {guarantee: "G02", file: acknowledgesBeforeWriting},
	"writes_the_last_event_later":      {guarantee: "G02", file: writesLastEventLater},
	"gap_in_revisions":                 {guarantee: "G03", log: changing(gapInRevisions)},
	"answers_first_revision":           {guarantee: "G03", log: appending(answersFirstRevision)},
	"no_stream_unchecked":              {guarantee: "G04", log: appending(noStreamUnchecked)},
	"checks_before_it_locks":           {guarantee: "G04", log: appending(checksThenWrites)},
	"conflict_without_revision":        {guarantee: "G04", log: appending(conflictWithoutRevision)},
	"revision_overflows":               {guarantee: "G04", log: appending(revisionOverflows)},
	"revision_beyond_the_tail":         {guarantee: "G04", log: appending(beyondTailAccepted)},
	"any_conflicts":                    {guarantee: "G04", log: appending(anyConflicts)},
	"overlap_with_any_is_recorded":     {guarantee: "G05", log: overlapWithAnyIsRecorded},
	"repeat_adds_again":                {guarantee: "G05", log: repeatAddsAgain},
	"repeat_conflicts_after_others":    {guarantee: "G05", log: appending(repeatOnlyWhileNewest)},
	"repeat_in_any_order":              {guarantee: "G05", log: appending(repeatInAnyOrder)},
	"repeat_answers_the_tail":          {guarantee: "G05", log: appending(repeatAnswersTail)},
	"ids_are_of_the_whole_log":         {guarantee: "G05", log: idsOfWholeLog},
	"unknown_as_conflict":              {guarantee: "G06", log: appending(unknownAsConflict)},
	"unknown_as_unavailable":           {guarantee: "G06", log: appending(unknownAsUnavailable)},
	"unavailable_though_recorded":      {guarantee: "G06", log: appending(unavailableThoughRecorded)},
	"microseconds":                     {guarantee: "G07", log: changing(microseconds)},
	"unix_nanoseconds_in_64_bits":      {guarantee: "G07", log: changing(unixNano)},
	"local_zone":                       {guarantee: "G07", log: changing(localZone)},
	"nil_data":                         {guarantee: "G07", log: changing(nilData)},
	"data_made_utf8":                   {guarantee: "G07", log: changing(dataMadeUTF8)},
	"data_ends_at_nul":                 {guarantee: "G07", log: changing(dataEndsAtNUL)},
	"lower_case_names":                 {guarantee: "G07", log: appending(lowerCaseNames)},
	"callers_bytes_shared":             {guarantee: "G07", log: callersBytesShared},
	"readers_bytes_reused":             {guarantee: "G07", log: readersBytesReused},
	"loses_an_acknowledged_append":     {guarantee: "G08", log: losesEveryThird},
	"reads_one_append_behind":          {guarantee: "G08", log: reading(oneBehind)},
	"tail_never_moves":                 {guarantee: "G08", log: tailNeverMoves},
	"loop_left_early_leaks":            {guarantee: "G08", log: reading(leaks)},
	"error_taken_for_the_end":          {guarantee: "G09", log: reading(errorIsEnd)},
	"goes_on_after_an_error":           {guarantee: "G09", log: reading(goesOnAfterError)},
	"all_skips_one":                    {guarantee: "G10", log: readingAll(skipsOne)},
	"all_repeats_one":                  {guarantee: "G10", log: readingAll(repeatsOne)},
	"all_shows_one_late":               {guarantee: "G10", log: showsOneLate},
	"positions_all_the_same":           {guarantee: "G10", log: changing(samePosition)},
	"subscription_drops_an_event":      {guarantee: "G11", log: subscribing(dropsAnEvent)},
	"subscription_repeats_an_event":    {guarantee: "G11", log: subscribing(repeatsAnEvent)},
	"subscription_without_the_past":    {guarantee: "G11", log: subscribing(onlyLive)},
	"subscription_without_the_future":  {guarantee: "G11", log: subscribing(onlyPast)},
	"subscription_forgets_the_error":   {guarantee: "G11", log: subscribing(forgetsError)},
	"subscription_outlives_its_ctx":    {guarantee: "G11", log: subscribing(outlivesContext)},
	"subscription_calls_concurrently":  {guarantee: "G11", log: subscribing(callsConcurrently)},
	"subscription_blocks_appends":      {guarantee: "G11", log: subscriptionBlocksAppends},
	"handle_reads_its_own_cache":       {guarantee: "G12", log: readsOwnCache},
	"handle_checks_its_own_revisions":  {guarantee: "G12", log: checksOwnRevisions},
	"subscription_wakes_on_own_handle": {guarantee: "G12", log: wakesOnOwnHandle},
	"ignores_other_processes":          {guarantee: "G12", file: ignoresOtherProcesses},
}

func zeroExpectedIsAny(sound eventlog.Log, a call) (eventlog.Appended, error) {
	if a.expected == (eventlog.Expected{}) {
		a.expected = eventlog.Any
	}
	return a.on(sound)
}

func splitsTooMany(sound eventlog.Log, a call) (at eventlog.Appended, err error) {
	for part := range slices.Chunk(a.events, eventlog.MaxEvents) {
		at, err = call{a.ctx, a.stream, a.expected, part}.on(sound)
	}
	return at, err
}

func oneAtATime(sound eventlog.Log, a call) (at eventlog.Appended, err error) {
	for i, e := range a.events {
		runtime.Gosched()
		if at, err = (call{a.ctx, a.stream, a.expected, []eventlog.Proposed{e}}).on(sound); err != nil {
			return at, err
		}
		if !a.expected.IsAny() || i > 0 {
			a.expected = eventlog.Exactly(at.Revision)
		}
	}
	return at, nil
}

func conflictAddsFirst(sound eventlog.Log, a call) (eventlog.Appended, error) {
	at, err := a.on(sound)
	if eventlog.IsConflict(err) {
		call{a.ctx, a.stream, eventlog.Any, a.events[:1]}.on(sound)
	}
	return at, err
}

// copied is store with each event as change leaves it.
func copied(store *memory.Log, change func(i int, e *eventlog.Proposed) bool) *memory.Log {
	fresh, i := memory.New(), 0
	for r := range store.ReadAll(context.Background(), eventlog.Start) {
		e := eventlog.Proposed{ID: r.ID, Type: r.Type, Time: r.Time, Data: r.Data}
		if change(i, &e) {
			fresh.Append(context.Background(), r.Stream, eventlog.Any, e)
		}
		i++
	}
	return fresh
}

func reopenLosesNewest(store *memory.Log) *memory.Log {
	tail, _ := store.Tail(context.Background())
	n, _ := tail.Parts()
	return copied(store, func(i int, _ *eventlog.Proposed) bool { return i < int(n)-1 })
}

func reopenMovesPositions(store *memory.Log) *memory.Log {
	fresh := memory.New()
	for r := range store.ReadAll(context.Background(), eventlog.Start) {
		if r.Revision == 0 { // the streams one after the other
			for r := range store.ReadStream(context.Background(), r.Stream, 0) {
				fresh.Append(context.Background(), r.Stream, eventlog.Any, eventlog.Proposed{ID: r.ID, Type: r.Type, Time: r.Time, Data: r.Data})
			}
		}
	}
	return fresh
}

func gapInRevisions(r *eventlog.Recorded) {
	if r.Revision >= 5 {
		r.Revision++
	}
}

func answersFirstRevision(sound eventlog.Log, a call) (eventlog.Appended, error) {
	at, err := a.on(sound)
	at.Revision -= min(at.Revision, uint64(len(a.events)-1))
	return at, err
}

func noStreamUnchecked(sound eventlog.Log, a call) (eventlog.Appended, error) {
	if a.expected.IsNoStream() {
		a.expected = eventlog.Any
	}
	return a.on(sound)
}

// checksThenWrites leaves time for another writer between the two.
func checksThenWrites(sound eventlog.Log, a call) (eventlog.Appended, error) {
	n := length(sound, a.stream)
	r, exactly := a.expected.Revision()
	if exactly && r+1 == uint64(n) || a.expected.IsNoStream() && n == 0 {
		a.expected = eventlog.Any
		runtime.Gosched()
	}
	return a.on(sound)
}

func conflictWithoutRevision(sound eventlog.Log, a call) (eventlog.Appended, error) {
	at, err := a.on(sound)
	if c := (*eventlog.ConflictError)(nil); errors.As(err, &c) {
		c.Current = 0
	}
	return at, err
}

func revisionOverflows(sound eventlog.Log, a call) (eventlog.Appended, error) {
	if r, ok := a.expected.Revision(); ok && r == math.MaxUint64 && length(sound, a.stream) == 0 {
		a.expected = eventlog.NoStream
	}
	return a.on(sound)
}

func beyondTailAccepted(sound eventlog.Log, a call) (eventlog.Appended, error) {
	if r, ok := a.expected.Revision(); ok && r >= uint64(length(sound, a.stream)) {
		a.expected = eventlog.Any
	}
	return a.on(sound)
}

// anyConflicts is a backend that turns Any into a check and does not try again.
func anyConflicts(sound eventlog.Log, a call) (eventlog.Appended, error) {
	if n := length(sound, a.stream); a.expected.IsAny() && n > 0 {
		runtime.Gosched()
		a.expected = eventlog.Exactly(uint64(n - 1))
	}
	return a.on(sound)
}

func unknownAsConflict(sound eventlog.Log, a call) (eventlog.Appended, error) {
	at, err := a.on(sound)
	if eventlog.IsUnknown(err) {
		err = &eventlog.ConflictError{Stream: a.stream, Expected: a.expected, Exists: true}
	}
	return at, err
}

func unknownAsUnavailable(sound eventlog.Log, a call) (eventlog.Appended, error) {
	at, err := a.on(sound)
	if eventlog.IsUnknown(err) {
		err = errors.Join(eventlog.ErrUnavailable, errLost)
	}
	return at, err
}

func unavailableThoughRecorded(sound eventlog.Log, a call) (eventlog.Appended, error) {
	ctx := a.ctx
	a.ctx = context.WithoutCancel(ctx)
	at, err := a.on(sound)
	if err == nil && ctx.Err() != nil {
		err = errors.Join(eventlog.ErrUnavailable, ctx.Err())
	}
	return at, err
}

func lowerCaseNames(sound eventlog.Log, a call) (eventlog.Appended, error) {
	a.stream = strings.ToLower(a.stream)
	return a.on(sound)
}

func microseconds(r *eventlog.Recorded) { r.Time = r.Time.Truncate(time.Microsecond) }
func unixNano(r *eventlog.Recorded)     { r.Time = time.Unix(0, r.Time.UnixNano()).UTC() }
func localZone(r *eventlog.Recorded)    { r.Time = r.Time.In(time.FixedZone("local", 3600)) }
func samePosition(r *eventlog.Recorded) { r.Position = eventlog.NewPosition(1, 1) }

func nilData(r *eventlog.Recorded) {
	if len(r.Data) == 0 {
		r.Data = nil
	}
}

func dataMadeUTF8(r *eventlog.Recorded) {
	r.Data = []byte(strings.ToValidUTF8(string(r.Data), "\ufffd"))
}

func dataEndsAtNUL(r *eventlog.Recorded) {
	before, _, _ := strings.Cut(string(r.Data), "\x00")
	r.Data = []byte(before)
}

func losesEveryThird(log eventlog.Log) eventlog.Log {
	var n atomic.Int64
	return appending(func(sound eventlog.Log, a call) (eventlog.Appended, error) {
		if n.Add(1)%3 > 0 {
			return a.on(sound)
		}
		tail, err := sound.Tail(a.ctx)
		return eventlog.Appended{Revision: uint64(length(sound, a.stream) + len(a.events) - 1), Position: tail}, err
	})(log)
}

func tailNeverMoves(log eventlog.Log) eventlog.Log {
	return &wrong{Log: log, tail: func(eventlog.Position) eventlog.Position { return eventlog.Start }}
}
