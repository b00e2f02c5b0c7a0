package ingress

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// Check is one condition for being ready.
type Check struct {
	Name string

	// Probe is nil when the condition holds. Its error's text is shown to
	// whoever asks. It must end with ctx and be safe for concurrent use.
	Probe func(ctx context.Context) error
}

// probeTimeout is how long all checks together may take.
const probeTimeout = 5 * time.Second

// report is the JSON of GET /readyz.
type report struct {
	Ready  bool              `json:"ready"`
	Checks []checkReport     `json:"checks"`
	About  map[string]string `json:"about,omitempty"`
}

type checkReport struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

// healthy answers as long as the process does.
func healthy(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok\n") // a client that is gone needs no answer
}

// readiness answers 200 when every check holds, else 503.
func readiness(checks []Check, about map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), probeTimeout)
		defer cancel()
		result := report{Ready: true, Checks: make([]checkReport, len(checks)), About: about}
		var wg sync.WaitGroup
		for i, c := range checks {
			wg.Go(func() { result.Checks[i] = probe(ctx, c) })
		}
		wg.Wait()
		for _, c := range result.Checks {
			result.Ready = result.Ready && c.OK
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		if !result.Ready {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(result) // a client that is gone needs no answer
	}
}

// probe runs one check, in its own goroutine: a panic in it would otherwise end
// the process.
func probe(ctx context.Context, c Check) (result checkReport) {
	defer func() {
		if value := recover(); value != nil {
			result = checkReport{Name: c.Name, Detail: fmt.Sprintf("the check panicked with a %T", value)}
		}
	}()
	if err := c.Probe(ctx); err != nil {
		return checkReport{Name: c.Name, Detail: err.Error()}
	}
	return checkReport{Name: c.Name, OK: true, Detail: "ok"}
}
