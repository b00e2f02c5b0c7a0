package eventlog

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Position is a place in the whole log, opaque to everyone but the adapter that
// made it. The zero value, Start, is before the first event. It has two parts
// because KurrentDB orders by commit and then prepare; other adapters use the
// same number for both.
type Position struct{ commit, prepare uint64 }

// Start is the position before the first event.
var Start Position

// NewPosition is for adapters.
func NewPosition(commit, prepare uint64) Position { return Position{commit, prepare} }

// Parts is for adapters.
func (p Position) Parts() (commit, prepare uint64) { return p.commit, p.prepare }

// Compare is -1, 0 or 1 as p is before, at or behind q.
func (p Position) Compare(q Position) int {
	if c := cmp.Compare(p.commit, q.commit); c != 0 {
		return c
	}
	return cmp.Compare(p.prepare, q.prepare)
}

// String is a form that ParsePosition reads.
func (p Position) String() string {
	return strconv.FormatUint(p.commit, 10) + "/" + strconv.FormatUint(p.prepare, 10)
}

// ParsePosition reads what String wrote.
func ParsePosition(s string) (Position, error) {
	commit, prepare, found := strings.Cut(s, "/")
	c, err1 := strconv.ParseUint(commit, 10, 64)
	p, err2 := strconv.ParseUint(prepare, 10, 64)
	if !found || err1 != nil || err2 != nil {
		return Start, fmt.Errorf("position %q is not of the form commit/prepare", s)
	}
	return Position{c, p}, nil
}
