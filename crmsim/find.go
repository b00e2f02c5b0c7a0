package crmsim

import "net/http"

type found struct {
	CRMID      string `json:"id"`
	ExternalID string `json:"external_id"`
}

func (s *Server) handleFind(w http.ResponseWriter, r *http.Request) {
	externalID := r.URL.Query().Get("external_id")
	arrived, ok := s.arrive(w, r, Find, externalID)
	if !ok {
		return
	}
	b := behaviourOf[arrived.Fault]
	if b.effect == held {
		s.hang()
	}
	truth := inJSON(http.StatusOK, map[string][]found{"leads": s.find(externalID, arrived.Fault == LookupLags)})
	s.answer(w, arrived.Number, b.answer(s.conditions(), truth))
}

// find lists the leads with the external id, oldest first; a lagging index misses the young ones.
func (s *Server) find(externalID string, lagging bool) []found {
	s.mu.Lock()
	defer s.mu.Unlock()
	horizon := s.now().Add(-s.config.IndexLag)
	hits := []found{}
	for _, hit := range s.ledger.byExternal[externalID] {
		if lagging && hit.At.After(horizon) {
			continue
		}
		hits = append(hits, found{hit.CRMID, hit.ExternalID})
	}
	return hits
}
