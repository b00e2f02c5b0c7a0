package restcrm

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/leadonce/leadonce/engine/crm/httponce"
)

// withAnswer is the environment of a request and what came back.
func withAnswer(env map[string]any, a httponce.Answer) map[string]any {
	env = maps.Clone(env)
	headers := make(map[string]string, len(a.Header))
	for name, values := range a.Header {
		headers[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	env["status"], env["headers"], env["text"], env["body"] = a.Status, headers, string(a.Body), parseJSON(a.Body)
	return env
}

// parseJSON is the value of a body that is exactly one JSON value, else nil.
func parseJSON(body []byte) any {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil
	}
	return numbers(v)
}

// numbers makes whole numbers ints, which a float64 would round: ids can have
// more than 53 bits.
func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return int(n)
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = numbers(v[name])
		}
	}
	return v
}

const maxCRMID = 200 // bytes

// idOf is the lead's id: a text without spaces, or a whole number above 0.
func idOf(v any) (string, bool) {
	switch v := v.(type) {
	case int:
		return strconv.Itoa(v), v > 0
	case string:
		for _, r := range v {
			if r <= ' ' || r == 0x7f {
				return "", false
			}
		}
		return v, v != "" && len(v) <= maxCRMID
	}
	return "", false
}

// retryAfter is how long the answer asks to be left alone: what the rule reads,
// else what the header of a 429 or 503 says.
func retryAfter(r *rule, env map[string]any, a httponce.Answer, now time.Time) time.Duration {
	if r != nil && r.retryAfter != nil {
		v, err := r.retryAfter.eval(env)
		if err != nil {
			return 0
		}
		return pauseOf(v, now)
	}
	if r != nil && r.pause > 0 {
		return r.pause
	}
	if a.Status == http.StatusTooManyRequests || a.Status == http.StatusServiceUnavailable || r != nil && r.is == notApplied {
		return httponce.RetryAfter(a.Header, now)
	}
	return 0
}

// pauseOf reads seconds, or the text of a Retry-After header.
func pauseOf(v any, now time.Time) time.Duration {
	switch v := v.(type) {
	case int:
		return pauseOf(strconv.Itoa(v), now)
	case float64:
		if v > 0 && v < float64(365*24*time.Hour/time.Second) {
			return time.Duration(v * float64(time.Second))
		}
	case string:
		return httponce.RetryAfter(http.Header{"Retry-After": {v}}, now)
	}
	return 0
}
