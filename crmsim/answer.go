package crmsim

import (
	"net/http"
	"strconv"
	"time"
)

// conditions are what an answer may depend on besides the truth.
type conditions struct {
	now        time.Time
	retryAfter time.Duration
}

const (
	htmlPage = "<!doctype html><title>Sign in</title><p>Please sign in to continue.</p>\n"
	year     = 365 * 24 * time.Hour
)

func truthful(_ conditions, truth reply) reply { return truth }

func reset(conditions, reply) reply { return reply{outcome: OutcomeReset} }

func cut(conditions, reply) reply { return reply{outcome: OutcomeCut} }

func serverError(conditions, reply) reply {
	return problem(http.StatusInternalServerError, "internal")
}

func notExecuted(conditions, reply) reply {
	return problem(http.StatusServiceUnavailable, "not_executed")
}

func unavailable(conditions, reply) reply {
	return answered(http.StatusServiceUnavailable, "", "")
}

func badRequest(conditions, reply) reply {
	return problem(http.StatusBadRequest, "bad_request")
}

func okWithoutID(conditions, reply) reply {
	return inJSON(http.StatusOK, map[string]string{"status": "ok"})
}

func okWithError(conditions, reply) reply {
	return problem(http.StatusOK, "internal")
}

func okHTML(conditions, reply) reply {
	return answered(http.StatusOK, typeHTML, htmlPage)
}

func loginRedirect(conditions, reply) reply {
	return answered(http.StatusFound, "", "").with("Location", "/login")
}

// rateLimited sends whole seconds, as RFC 9110 wants them. A wait below a second is sent as 0, with
// its milliseconds in the header that some vendors add.
func rateLimited(c conditions, truth reply) reply {
	seconds := strconv.FormatInt(int64(c.retryAfter/time.Second), 10)
	r := rateLimitedAbsent(c, truth).with("Retry-After", seconds)
	if c.retryAfter < time.Second {
		r = r.with("Retry-After-Ms", strconv.FormatInt(c.retryAfter.Milliseconds(), 10))
	}
	return r
}

func rateLimitedAbsent(conditions, reply) reply {
	return problem(http.StatusTooManyRequests, "rate_limited")
}

func rateLimitedDate(c conditions, truth reply) reply {
	return rateLimitedUntil(c, truth, c.now.Add(c.retryAfter))
}

func rateLimitedPast(c conditions, truth reply) reply {
	return rateLimitedUntil(c, truth, c.now.Add(-time.Hour))
}

func rateLimitedFar(c conditions, truth reply) reply {
	return rateLimitedUntil(c, truth, c.now.Add(year))
}

func rateLimitedUntil(c conditions, truth reply, until time.Time) reply {
	return rateLimitedAbsent(c, truth).with("Retry-After", until.UTC().Format(http.TimeFormat))
}
