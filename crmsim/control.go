package crmsim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// SetScript replaces what is left of the script.
func (s *Server) SetScript(script Script) error {
	if err := script.validate(s.config.Class); err != nil {
		return fmt.Errorf("crmsim: script: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chooser.script = script.clone()
	return nil
}

func (s *Server) handleScript(w http.ResponseWriter, r *http.Request) {
	var script Script
	if !decodeControl(w, r, &script) {
		return
	}
	if err := s.SetScript(script); err != nil {
		explained(http.StatusBadRequest, "unknown_fault", err).send(w)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// outage asks Serve to stop listening for a while.
type outage struct {
	length time.Duration
	begun  chan struct{} // closed when connections are refused
	ended  chan struct{} // closed when the address is listened on again, or Serve has ended
}

var errNotServing = errors.New("crmsim: no outage: only a CRM run by Serve on TCP can be taken down")

// Down closes the listener of Serve, and its idle connections, for the length. When it returns,
// connections are refused; the channel is closed when they no longer are. A second outage begins
// after the first.
func (s *Server) Down(ctx context.Context, length time.Duration) (ended <-chan struct{}, err error) {
	if length <= 0 {
		return nil, fmt.Errorf("crmsim: outage of %v: give a positive length", length)
	}
	s.mu.Lock()
	serving := s.serving
	s.mu.Unlock()
	if !serving {
		return nil, errNotServing
	}
	o := outage{length: length, begun: make(chan struct{}), ended: make(chan struct{})}
	select {
	case s.outages <- o:
		<-o.begun
		return o.ended, nil
	case <-s.stopping:
		return nil, errNotServing
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *Server) handleDown(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Seconds float64 `json:"seconds"`
	}
	if !decodeControl(w, r, &body) {
		return
	}
	if _, err := s.Down(r.Context(), time.Duration(body.Seconds*float64(time.Second))); err != nil {
		explained(http.StatusConflict, "no_outage", err).send(w)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
