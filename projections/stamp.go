package projections

import (
	"database/sql/driver"
	"fmt"
	"time"
)

// stamp is a time as the file keeps it: text of one width in UTC, so that it
// sorts by time and keeps every nanosecond; empty for the zero time.
type stamp time.Time

const stampLayout = "2006-01-02T15:04:05.000000000Z"

// The stamps reach from the year 0 to the year 9999, as RFC 3339 does.
var (
	earliest = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC)
)

// instant is t in UTC, within what a stamp can hold.
func instant(t time.Time) time.Time {
	t = t.UTC()
	switch {
	case t.Before(earliest):
		return earliest
	case t.After(latest):
		return latest
	default:
		return t
	}
}

func (s *stamp) Value() (driver.Value, error) { return stampText(time.Time(*s)), nil }

func stampText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return instant(t).Format(stampLayout)
}

func (s *stamp) Scan(v any) error {
	text, ok := v.(string)
	if !ok {
		return fmt.Errorf("a time is kept as %T, want text", v)
	}
	if text == "" {
		*s = stamp{}
		return nil
	}
	t, err := time.Parse(stampLayout, text)
	*s = stamp(t)
	return err
}
