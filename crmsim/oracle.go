package crmsim

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
)

const requestsLimitDefault = 1000

// Effects lists the leads that exist, in order of creation.
func (s *Server) Effects() []Effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.effects()
}

// Requests lists all creates and finds, in order of arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ledger.requests)
}

// Totals counts the requests per external id.
func (s *Server) Totals() map[string]Total {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.ledger.totals)
}

// Stats counts what has happened.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.currentStats()
}

func (s *Server) currentStats() Stats {
	stats := s.ledger.stats
	stats.Faults = maps.Clone(stats.Faults)
	stats.LoginVisits = int(s.logins.Load())
	return stats
}

// Wait returns when the condition holds; it is asked now and after every entry of the journal. The
// error is the context's.
func (s *Server) Wait(ctx context.Context, condition func(Stats) bool) error {
	for {
		s.mu.Lock()
		stats := s.currentStats()
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		s.mu.Unlock()
		if condition(stats) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("crmsim: wait, at %+v: %w", stats, context.Cause(ctx))
		}
	}
}

func (s *Server) handleEffects(w http.ResponseWriter, _ *http.Request) {
	inJSON(http.StatusOK, s.Effects()).send(w)
}

func (s *Server) handleStats(w http.ResponseWriter, _ *http.Request) {
	inJSON(http.StatusOK, s.Stats()).send(w)
}

// handleRequests serves the newest requests, newest last, and the totals of every external id; with
// ?external_id= both are of that one only.
func (s *Server) handleRequests(w http.ResponseWriter, r *http.Request) {
	limit := requestsLimitDefault
	if given := r.URL.Query().Get("limit"); given != "" {
		var err error
		if limit, err = strconv.Atoi(given); err != nil || limit < 0 {
			problem(http.StatusBadRequest, "limit").send(w)
			return
		}
	}
	wanted := func(string) bool { return true }
	if query := r.URL.Query(); query.Has("external_id") {
		wanted = func(externalID string) bool { return externalID == query.Get("external_id") }
	}
	s.mu.Lock()
	requests, totals := s.ledger.recent(limit, wanted), s.ledger.totalsOf(wanted)
	s.mu.Unlock()
	inJSON(http.StatusOK, struct {
		Requests []Request        `json:"requests"`
		Totals   map[string]Total `json:"totals"`
	}{requests, totals}).send(w)
}

func (s *Server) handleLogin(w http.ResponseWriter, _ *http.Request) {
	s.logins.Add(1)
	answered(http.StatusOK, typeHTML, htmlPage).send(w)
}

func decodeControl(w http.ResponseWriter, r *http.Request, into any) bool {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, bodyMax))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		explained(http.StatusBadRequest, "malformed", err).send(w)
		return false
	}
	return true
}
