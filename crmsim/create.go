package crmsim

import (
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/go-chi/chi/v5"
)

const (
	bodyMax = 1 << 20 // bytes

	fieldReject    = "reject"
	fieldLookAlike = "look_alike"
)

// createRequest is a create in hand.
type createRequest struct {
	number     int
	at         time.Time
	key        string
	externalID string
	fields     map[string]string
	malformed  bool
	reserved   bool // it holds its key, which apply must give back
}

func (s *Server) handleCreate(w http.ResponseWriter, r *http.Request) {
	c := readCreate(w, r)
	arrived, ok := s.arrive(w, r, Create, c.externalID)
	if !ok {
		return
	}
	c.number, c.at = arrived.Number, arrived.At
	b := behaviourOf[arrived.Fault]
	s.answer(w, arrived.Number, b.answer(s.conditions(), s.carryOut(c, b)))
}

func readCreate(w http.ResponseWriter, r *http.Request) *createRequest {
	var body struct {
		ExternalID string            `json:"external_id"`
		Fields     map[string]string `json:"fields"`
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, bodyMax)).Decode(&body)
	c := &createRequest{
		key:        r.Header.Get(headerKey),
		externalID: body.ExternalID,
		fields:     fieldsOf(body.Fields),
		malformed:  err != nil,
	}
	if inPath := chi.URLParam(r, "external_id"); inPath != "" {
		c.externalID = unescaped(r, inPath)
	}
	return c
}

// unescaped undoes what chi leaves when it routes by the raw path.
func unescaped(r *http.Request, param string) string {
	if r.URL.RawPath == "" {
		return param
	}
	plain, err := url.PathUnescape(param)
	if err != nil {
		return param
	}
	return plain
}

// carryOut lets the effect happen when the fault wants it and returns the truthful reply.
func (s *Server) carryOut(c *createRequest, b behaviour) reply {
	if b.effect == never {
		return reply{}
	}
	if b.effect == twice {
		again := *c
		s.execute(c, once, true)
		return s.execute(&again, once, true)
	}
	return s.execute(c, b.effect, b.fault != KeyIgnored)
}

func (s *Server) execute(c *createRequest, when timing, keyHonoured bool) reply {
	if refusal, refused := s.refuse(c); refused {
		return refusal
	}
	if known, seen := s.reserve(c, keyHonoured); seen {
		return known
	}
	switch when {
	case held:
		return s.applyHeld(c)
	case deferred:
		s.applyDeferred(c)
		return inJSON(http.StatusAccepted, map[string]string{"status": "accepted"})
	default:
		return s.apply(c)
	}
}

// refuse is validation: it looks at the request only, before anything happens.
func (s *Server) refuse(c *createRequest) (reply, bool) {
	_, rejected := c.fields[fieldReject]
	lookAlike, matched := c.fields[fieldLookAlike]
	switch {
	case c.malformed:
		return problem(http.StatusBadRequest, "malformed"), true
	case c.externalID == "":
		return problem(http.StatusUnprocessableEntity, "external_id_missing"), true
	case rejected || s.config.Poisoned != nil && s.config.Poisoned(c.externalID, c.fields):
		return problem(http.StatusUnprocessableEntity, "validation"), true
	case matched:
		return problemWithID(http.StatusConflict, "look_alike", lookAlike), true
	default:
		return reply{}, false
	}
}

// apply is the effect: one entry in the journal, or none when a unique external id is taken.
func (s *Server) apply(c *createRequest) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	existing := s.ledger.byExternal[c.externalID]
	if len(existing) > 0 && s.config.Class == UniqueCreate {
		if s.config.OmitExistingID {
			return problem(http.StatusConflict, "already_exists")
		}
		return problemWithID(http.StatusConflict, "already_exists", existing[0].CRMID)
	}
	if len(existing) > 0 && s.config.Class == Upsert {
		updated := entry{Kind: kindUpdated, Request: c.number, CRMID: existing[0].CRMID, Fields: c.fields}
		return s.effect(updated, madeLead(http.StatusOK, existing[0].CRMID))
	}
	made := entry{
		Kind: kindCreated, Request: c.number, ExternalID: c.externalID,
		CRMID: s.ledger.nextID(), Fields: c.fields,
	}
	if c.reserved {
		made.Key, made.KeyAt = c.key, c.at
		delete(s.inFlight, c.key)
	}
	return s.effect(made, madeLead(http.StatusCreated, made.CRMID))
}

// effect records the entry; success is what the client would see. The caller holds mu.
func (s *Server) effect(e entry, success reply) reply {
	e.At = s.now()
	if err := s.record(e); err != nil {
		return explained(http.StatusInternalServerError, codeJournal, err)
	}
	return success
}
