package crmsim

// hang waits Config.Hang, or until the CRM stops. It does not ask whether the client is still there.
func (s *Server) hang() {
	select {
	case <-s.config.After(s.config.Hang):
	case <-s.stopping:
	}
}

// applyHeld is the effect late and the answer after it.
func (s *Server) applyHeld(c *createRequest) reply {
	s.addPending(1)
	return s.applyPending(c)
}

// applyDeferred is the effect late, behind the answer. Close waits for it: the request that calls this
// is itself active, so Go cannot meet a Wait that has ended.
func (s *Server) applyDeferred(c *createRequest) {
	s.addPending(1)
	s.active.Go(func() { s.applyPending(c) })
}

func (s *Server) applyPending(c *createRequest) reply {
	defer s.addPending(-1)
	s.hang()
	return s.apply(c)
}

func (s *Server) addPending(change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.stats.Pending += change
	s.announce()
}
