package eventlog

import (
	"encoding/hex"
	"fmt"
	"time"
)

// Limits of the port. Adapters refuse what exceeds them with ErrInvalid.
const (
	MaxStreamName = 200     // bytes; ASCII, 0x21 to 0x7e
	MaxTypeName   = 200     // bytes; ASCII, 0x21 to 0x7e
	MaxData       = 4 << 20 // bytes in one event: a 1 MiB update, quoted
	MaxEvents     = 100     // in one append
)

// EventID identifies an event. It is made once, outside any retry loop, and
// never derived from the content: two deliveries of one update are two events.
type EventID [16]byte

// String is the id in the 8-4-4-4-12 form of RFC 9562.
func (id EventID) String() string {
	h := hex.EncodeToString(id[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// Proposed is an event that is not yet recorded.
type Proposed struct {
	ID   EventID // not zero
	Type string
	Time time.Time // when it happened, by the proposer's clock; not zero
	Data []byte
}

// Recorded is an event as the log keeps it.
type Recorded struct {
	Stream   string
	Revision uint64 // 0-based, in the stream
	Position Position
	ID       EventID
	Type     string
	Time     time.Time // UTC
	Data     []byte    // never nil; the reader may keep it but not change it
}

// Expected is what an append demands of the revision of its stream. Its zero
// value is refused, so that a forgotten expectation is never taken for Any.
type Expected struct {
	kind     expectedKind
	revision uint64
}

type expectedKind uint8

const (
	kindUnset expectedKind = iota
	kindNoStream
	kindExactly
	kindAny
)

// NoStream demands that the stream has no event yet: the first write wins.
var NoStream = Expected{kind: kindNoStream}

// Any demands nothing.
var Any = Expected{kind: kindAny}

// Exactly demands that r is the revision of the stream's newest event.
func Exactly(r uint64) Expected { return Expected{kind: kindExactly, revision: r} }

// IsNoStream reports whether e is NoStream.
func (e Expected) IsNoStream() bool { return e.kind == kindNoStream }

// IsAny reports whether e is Any.
func (e Expected) IsAny() bool { return e.kind == kindAny }

// Revision is the revision that Exactly demands; ok is false for the others.
func (e Expected) Revision() (r uint64, ok bool) { return e.revision, e.kind == kindExactly }

func (e Expected) String() string {
	switch e.kind {
	case kindNoStream:
		return "no stream"
	case kindAny:
		return "any"
	case kindExactly:
		return fmt.Sprintf("revision %d", e.revision)
	default:
		return "unset"
	}
}

// CheckAppend returns ErrInvalid, with the reason, when the arguments of an
// append break a limit of the port. Every adapter calls it first.
//
// A time is of the years 1 to 9999, in UTC: that is all RFC 3339 can say.
func CheckAppend(stream string, expected Expected, events []Proposed) error {
	if err := CheckStream(stream); err != nil {
		return err
	}
	if expected.kind == kindUnset {
		return fmt.Errorf("%w: append to %s without an expected revision", ErrInvalid, stream)
	}
	if len(events) == 0 || len(events) > MaxEvents {
		return fmt.Errorf("%w: append of %d events to %s, want 1 to %d", ErrInvalid, len(events), stream, MaxEvents)
	}
	seen := make(map[EventID]bool, len(events))
	for i, e := range events {
		switch {
		case e.ID == EventID{}:
			return fmt.Errorf("%w: event %d for %s has no id", ErrInvalid, i, stream)
		case seen[e.ID]:
			return fmt.Errorf("%w: event id %s twice in one append to %s", ErrInvalid, e.ID, stream)
		case !printable(e.Type, MaxTypeName):
			return fmt.Errorf("%w: event type %q for %s, want 1 to %d printable ASCII bytes", ErrInvalid, e.Type, stream, MaxTypeName)
		case e.Time.IsZero():
			return fmt.Errorf("%w: event %s for %s has no time", ErrInvalid, e.ID, stream)
		case e.Time.UTC().Year() < 1 || e.Time.UTC().Year() > 9999:
			return fmt.Errorf("%w: event %s for %s is of the year %d, want 1 to 9999", ErrInvalid, e.ID, stream, e.Time.UTC().Year())
		case len(e.Data) > MaxData:
			return fmt.Errorf("%w: event %s for %s has %d bytes, at most %d", ErrInvalid, e.ID, stream, len(e.Data), MaxData)
		}
		seen[e.ID] = true
	}
	return nil
}

// CheckStream returns ErrInvalid when the stream's name breaks the limit.
func CheckStream(stream string) error {
	if !printable(stream, MaxStreamName) {
		return fmt.Errorf("%w: stream name %.40q, want 1 to %d printable ASCII bytes", ErrInvalid, stream, MaxStreamName)
	}
	return nil
}

func printable(s string, limit int) bool {
	if s == "" || len(s) > limit {
		return false
	}
	for i := range len(s) {
		if s[i] < 0x21 || s[i] > 0x7e {
			return false
		}
	}
	return true
}
