package crmsim

import (
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"
)

// Remove deletes a lead, as a person does. It meets no fault.
func (s *Server) Remove(crmID string) error { return s.remove(crmID, "") }

// Merge deletes a lead in favour of another, whose fields and external id stay as they are.
func (s *Server) Merge(crmID, into string) error {
	if into == "" || crmID == into {
		return fmt.Errorf("crmsim: merge lead %q into %q: name two leads", crmID, into)
	}
	return s.remove(crmID, into)
}

func (s *Server) remove(crmID, into string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, needed := range []string{crmID, into} {
		if _, ok := s.ledger.byID[needed]; !ok && needed != "" {
			return fmt.Errorf("crmsim: lead %q does not exist", needed)
		}
	}
	return s.record(entry{Kind: kindRemoved, At: s.now(), CRMID: crmID, MergedInto: into})
}

func (s *Server) handleRemove(w http.ResponseWriter, r *http.Request) {
	id, into := chi.URLParam(r, "id"), r.URL.Query().Get("merged_into")
	remove := func() error { return s.Remove(id) }
	if into != "" {
		remove = func() error { return s.Merge(id, into) }
	}
	if err := remove(); err != nil {
		explained(http.StatusNotFound, "not_found", err).send(w)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
