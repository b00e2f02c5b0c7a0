package projections

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

// arrival is one event of a job's stream, decoded, without its data.
type arrival struct {
	eventlog.Recorded
	event   job.Event // nil when it cannot be decoded
	fault   string    // why it cannot be decoded
	unknown bool      // a release that knows its type could decode it
}

// arrive decodes r, unless it is of a stream that no read model is about. Here
// the update's text ends: nothing behind this function has it.
func arrive(r eventlog.Recorded) (a arrival, ours bool) {
	if !isJob(r.Stream) {
		return arrival{}, false
	}
	event, err := job.Decode(r.Type, r.Data)
	r.Data = nil
	a = arrival{Recorded: r}
	switch {
	case err != nil:
		a.fault, a.unknown = fault(err)
	case r.Time.Before(earliest) || r.Time.After(latest):
		a.fault = "its time is not within the years 0 to 9999"
	default:
		a.event = event
		if received, ok := event.(job.UpdateReceived); ok {
			received.Update = ""
			a.event = received
		}
	}
	return a, true
}

// fault says why an event cannot be decoded, without repeating any of its data,
// as the errors of encoding/json and time do.
func fault(err error) (reason string, unknown bool) {
	var (
		kind   *job.UnknownTypeError
		syntax *json.SyntaxError
		shape  *json.UnmarshalTypeError
	)
	switch {
	case errors.As(err, &kind):
		return kind.Error(), true
	case errors.As(err, &syntax):
		return fmt.Sprintf("its data is no JSON from byte %d on", syntax.Offset), false
	case errors.As(err, &shape) && shape.Field != "":
		found, _, _ := strings.Cut(shape.Value, " ")
		return fmt.Sprintf("%s in its data is a %s", shape.Field, found), false
	default:
		return "its data is not of its type", false
	}
}

// misplaced says why the event cannot follow the state; empty when it can.
func (a arrival) misplaced(s job.State) string {
	received, isReceived := a.event.(job.UpdateReceived)
	switch {
	case a.Revision != s.EventCount:
		return fmt.Sprintf("it has revision %d where %d was due", a.Revision, s.EventCount)
	case isReceived && received.Key.Stream() != a.Stream:
		return "it names an event key of another stream"
	case !isReceived && s.EventCount == 0:
		return "it is the first of its stream and no UpdateReceived"
	default:
		return ""
	}
}

func isJob(stream string) bool { return strings.HasPrefix(stream, job.JobStreams) }
