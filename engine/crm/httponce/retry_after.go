package httponce

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"
)

// RetryAfter is how long the answer asks to be left alone: by Retry-After-Ms,
// which some vendors send, else by Retry-After in seconds or as a date
// (RFC 9110, 10.2.3). It is 0 when the answer does not say, or names the past.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if wait, ok := whole(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return wait
	}
	after := h.Get("Retry-After")
	if wait, ok := whole(after, time.Second); ok {
		return wait
	}
	if date, err := http.ParseTime(after); err == nil {
		return max(date.Sub(now), 0)
	}
	return 0
}

// whole reads a number of units that is not negative, the longest duration for
// one that is longer.
func whole(s string, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || n < 0 {
		return 0, false
	}
	if n > math.MaxInt64/int64(unit) {
		return math.MaxInt64, true
	}
	return time.Duration(n) * unit, true
}
