package crmsim

import (
	"maps"
	"net/http"
	"time"
)

// usedKey is an idempotency key with the request that first bore it.
type usedKey struct {
	externalID string
	fields     map[string]string

	// Unset while that request is in flight.
	at    time.Time // its arrival; the validity counts from here
	crmID string
}

// reserve takes the key for this create, or gives the reply that the key's history demands. A key in
// flight does not expire.
func (s *Server) reserve(c *createRequest, honoured bool) (reply, bool) {
	if s.config.Class != IdempotencyKey || c.key == "" || !honoured {
		return reply{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	used, running := s.inFlight[c.key]
	if !running {
		stored, seen := s.ledger.keys[c.key]
		if !seen || c.at.Sub(stored.at) >= s.config.KeyValidity {
			s.inFlight[c.key] = usedKey{externalID: c.externalID, fields: c.fields}
			c.reserved = true
			return reply{}, false
		}
		used = stored
	}
	switch {
	case used.externalID != c.externalID || !maps.Equal(used.fields, c.fields):
		return problem(http.StatusUnprocessableEntity, "idempotency_key_reused"), true
	case running:
		return problem(http.StatusConflict, "idempotency_key_in_use"), true
	default:
		return madeLead(http.StatusCreated, used.crmID).with(headerReplayed, "true"), true
	}
}
