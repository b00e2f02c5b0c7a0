package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// wire is one row per wire name that any release ever wrote. A name is its
// event and a version, and its meaning never changes: a changed event gets a
// new row, and the old row's decode is rewritten to produce the new event.
type wire struct {
	name    string
	current bool // new events are written under this name
	decode  func([]byte) (Event, error)
}

var wires = []wire{
	{"UpdateReceived.v1", true, into[UpdateReceived]},
	{"DeliveryRepeated.v1", true, into[DeliveryRepeated]},
	{"KeyConflicted.v1", true, into[KeyConflicted]},
	{"JobClaimed.v1", true, into[JobClaimed]},
	{"ClaimRenewed.v1", true, into[ClaimRenewed]},
	{"ClaimReleased.v1", true, into[ClaimReleased]},
	{"AttemptNotApplied.v1", true, into[AttemptNotApplied]},
	{"OutcomeUnknown.v1", true, into[OutcomeUnknown]},
	{"ReconciliationNeeded.v1", true, into[ReconciliationNeeded]},
	{"StepConfirmed.v1", true, into[StepConfirmed]},
	{"LeadConfirmed.v1", true, into[LeadConfirmed]},
	{"ReceiptConflicted.v1", true, into[ReceiptConflicted]},
	{"NoEffectNeeded.v1", true, into[NoEffectNeeded]},
	{"LeadAbsent.v1", true, into[LeadAbsent]},
	{"JobDeadLettered.v1", true, into[JobDeadLettered]},
	{"JobRequeued.v1", true, into[JobRequeued]},
	{"OperationReserved.v1", true, into[OperationReserved]},
	{"ChatMigrated.v1", true, into[ChatMigrated]},
	{"SeriesJoined.v1", true, into[SeriesJoined]},
	{"ReplyClaimed.v1", true, into[ReplyClaimed]},
	{"ReplySent.v1", true, into[ReplySent]},
	{"ReplyRefused.v1", true, into[ReplyRefused]},
	{"ReplyUnknown.v1", true, into[ReplyUnknown]},
	{"PendingUpdatesDropped.v1", true, into[PendingUpdatesDropped]},
}

func into[E Event](data []byte) (Event, error) {
	var e E
	if !bytes.HasPrefix(data, []byte("{")) {
		return e, errors.New("the data is no JSON object") // null would make an empty event
	}
	err := json.Unmarshal(data, &e)
	return e, err
}

var wireByName, currentName = index(wires)

func index(rows []wire) (byName map[string]wire, current map[string]string) {
	byName, current = map[string]wire{}, map[string]string{}
	for _, w := range rows {
		byName[w.name] = w
		if w.current {
			event, _ := w.decode([]byte("{}"))
			current[event.Name()] = w.name
		}
	}
	return byName, current
}

// UnknownTypeError says that this release does not know an event's type: it was
// written by a newer one, or by something else.
type UnknownTypeError struct{ Type string }

func (e *UnknownTypeError) Error() string {
	return fmt.Sprintf("event type %q is not known to this release", e.Type)
}

// Encode gives an event its wire name and JSON.
func Encode(e Event) (wireName string, data []byte, err error) {
	name, ok := currentName[e.Name()]
	if !ok {
		return "", nil, fmt.Errorf("encode event: %s has no wire name", e.Name())
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return "", nil, fmt.Errorf("encode %s: %w", name, err)
	}
	return name, bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// Decode reads what any release's Encode wrote. It fails with *UnknownTypeError
// or on data that is not the event's.
func Decode(wireName string, data []byte) (Event, error) {
	w, ok := wireByName[wireName]
	if !ok {
		return nil, &UnknownTypeError{wireName}
	}
	e, err := w.decode(data)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", wireName, err)
	}
	return e, nil
}
