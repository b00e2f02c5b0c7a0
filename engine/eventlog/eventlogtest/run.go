package eventlogtest

import (
	"context"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
)

const defaultPatience = 30 * time.Second

// Run checks the backend against every guarantee of the port.
func Run(t *testing.T, backend Backend) {
	if backend.Patience == 0 {
		backend.Patience = defaultPatience
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if !backend.has(c.needs) {
				t.Skipf("the backend does not declare the capability %s", c.needs)
			}
			ctx, cancel := context.WithTimeout(t.Context(), backend.Patience)
			defer cancel()
			s := &scene{T: t, backend: backend, ctx: ctx}
			if c.needs != crash {
				s.log = backend.Open(t)
			}
			c.run(s)
			if s.log != nil {
				s.verify()
			}
		})
	}
}

// scene is what a case acts on: a fresh log, and a context that ends when the
// patience does.
type scene struct {
	*testing.T
	backend Backend
	ctx     context.Context
	log     eventlog.Log // nil in the cases that need Crash
}

var cases = []struct {
	name  string
	needs capability
	run   func(*scene)
}{
	{"G00_stream_names_beyond_the_limits_are_refused", none, refuseStreamNames},
	{"G00_events_beyond_the_limits_are_refused", none, refuseEvents},
	{"G00_the_limits_themselves_are_accepted", none, acceptLimits},

	{"G01_events_of_an_append_stay_together_under_concurrency", none, batchesStayTogether},
	{"G01_readers_never_see_half_an_append", none, readersSeeWholeBatches},
	{"G01_conflict_adds_none_of_many", none, conflictAddsNothing},

	{"G02_reopen_keeps_everything", reopen, reopenKeepsEverything},
	{"G02_reopen_continues_streams_and_repeats", reopen, reopenContinues},
	{"G02_kill_9_loses_nothing_acknowledged", crash, killLosesNothing},

	{"G03_revisions_count_from_zero", none, revisionsCount},
	{"G03_exactly_and_reload_lands_everything", none, exactlyAndReload},

	{"G04_conflicts_carry_the_current_revision", none, conflictsCarryRevision},
	{"G04_one_of_20_first_writes_wins", none, oneFirstWriteWins},
	{"G04_one_of_20_writes_at_a_revision_wins", none, oneWriteAtRevisionWins},
	{"G04_any_never_conflicts", none, anyNeverConflicts},

	{"G05_repeat_adds_nothing", none, repeatAddsNothing},
	{"G05_repeat_after_later_appends", none, repeatAfterLaterAppends},
	{"G05_repeat_compares_ids_only", none, repeatComparesIDsOnly},
	{"G05_partial_overlap_is_a_conflict", none, partialOverlapConflicts},
	{"G05_partial_overlap_with_any_is_a_conflict", none, partialOverlapWithAny},
	{"G05_other_order_or_expectation_is_a_conflict", none, otherOrderConflicts},
	{"G05_same_ids_in_another_stream_are_other_events", none, sameIDsElsewhere},
	{"G05_concurrent_repeats_record_once", none, concurrentRepeats},
	{"G05_repeat_after_unknown_outcome", loseAck, repeatAfterUnknown},

	{"G06_lost_acknowledgement_is_unknown", loseAck, lostAckIsUnknown},
	{"G06_unknown_then_overtaken_is_a_conflict", loseAck, unknownThenOvertaken},
	{"G06_ended_context_records_nothing", none, endedContextRecordsNothing},
	{"G06_cancelled_in_flight_never_lies", none, cancelledInFlight},

	{"G07_times_to_the_nanosecond_in_utc", none, timesRoundTrip},
	{"G07_data_byte_for_byte", none, dataRoundTrips},
	{"G07_ids_and_types", none, idsAndTypesRoundTrip},
	{"G07_hostile_stream_names_are_distinct", none, hostileStreamNames},
	{"G07_bytes_are_the_callers_after_append", none, callerKeepsBytes},
	{"G07_bytes_are_the_readers_after_reading", none, readerKeepsBytes},

	{"G08_every_append_is_read_at_once", none, readYourWrites},
	{"G08_stream_from_each_revision", none, streamFromEachRevision},
	{"G08_nothing_beyond_the_end", none, nothingBeyondTheEnd},
	{"G08_loops_left_early", none, loopsLeftEarly},
	{"G08_append_inside_a_loop", none, appendInsideLoop},
	{"G08_tail", none, tailFollows},

	{"G09_cut_read_is_an_error", cutRead, cutReadIsAnError},
	{"G09_ended_context_is_an_error", none, endedContextFailsReads},
	{"G09_context_ends_while_reading", none, contextEndsWhileReading},

	{"G10_all_after_each_position_is_the_suffix", none, suffixAfterEachPosition},
	{"G10_nothing_appears_behind_a_reader", none, nothingAppearsBehindReader},
	{"G10_checkpoint_belongs_to_its_log", none, checkpointBelongs},

	{"G11_subscribe_from_start_middle_and_tail", none, subscribeFrom},
	{"G11_order_under_20_writers", none, subscribeUnderWriters},
	{"G11_blocked_handler_holds_back_only_itself", none, blockedHandler},
	{"G11_handler_may_append", none, handlerMayAppend},
	{"G11_returns_the_handlers_error", none, returnsHandlersError},
	{"G11_returns_the_contexts_error", none, returnsContextsError},
	{"G11_leaves_no_goroutine", none, subscribeLeavesNothing},

	{"G12_two_handles_exactly_and_reload", second, handlesExactlyAndReload},
	{"G12_two_handles_one_first_write_wins", second, handlesFirstWrite},
	{"G12_two_handles_see_each_other", second, handlesSeeEachOther},
	{"G12_two_handles_subscribe", second, handlesSubscribe},
	{"G12_two_processes_and_kill_9", crash, twoProcesses},
}
