package crmsim

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
)

const (
	headerKey      = "Idempotency-Key"
	headerReplayed = "Idempotency-Replayed"
	headerFault    = "X-Crmsim-Fault"

	codeJournal = "journal_failed"
)

// A Server is one simulated CRM. It is an http.Handler, safe for concurrent use.
type Server struct {
	config Config
	routes http.Handler

	mu       sync.Mutex // guards everything down to changed
	ledger   *ledger
	journal  *journal
	broken   error // why the journal can take no more entries; then no effect happens either
	chooser  *chooser
	inFlight map[string]usedKey
	stopped  bool
	down     bool
	serving  bool
	changed  chan struct{} // closed at the next change, if anyone waits

	active   sync.WaitGroup // requests and late effects
	stopping chan struct{}  // closed when late effects must not wait any longer
	release  func()
	failed   chan struct{} // closed when broken is set
	outages  chan outage
	logins   atomic.Int64
}

// New starts a CRM, with the leads of Config.JournalPath if that file exists. Close it in the end.
func New(config Config) (*Server, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	s := &Server{
		config:   config.withDefaults(),
		ledger:   newLedger(),
		chooser:  newChooser(config),
		inFlight: map[string]usedKey{},
		stopping: make(chan struct{}),
		failed:   make(chan struct{}),
		outages:  make(chan outage),
	}
	s.release = sync.OnceFunc(func() { close(s.stopping) })
	s.routes = s.newRoutes()
	var err error
	s.journal, err = openJournal(config.JournalPath, config.Class, s.now(), s.ledger.fold)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Server) newRoutes() http.Handler {
	r := chi.NewRouter()
	r.NotFound(func(w http.ResponseWriter, _ *http.Request) { problem(http.StatusNotFound, "no_route").send(w) })
	r.MethodNotAllowed(func(w http.ResponseWriter, _ *http.Request) {
		problem(http.StatusMethodNotAllowed, "not_supported").send(w)
	})
	if s.config.Class == Upsert {
		r.Put("/leads/{external_id}", s.handleCreate)
	} else {
		r.Post("/leads", s.handleCreate)
	}
	if s.config.Class.CanFind() {
		r.Get("/leads", s.handleFind)
	}
	r.Delete("/leads/{id}", s.handleRemove)
	r.HandleFunc("/login", s.handleLogin)
	r.Get("/oracle/effects", s.handleEffects)
	r.Get("/oracle/requests", s.handleRequests)
	r.Get("/oracle/stats", s.handleStats)
	r.Post("/control/script", s.handleScript)
	r.Post("/control/down", s.handleDown)
	return r
}

// ServeHTTP resets connections during an outage and after Close; only /control and /oracle are served
// during an outage.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter(r.URL.Path) {
		reply{outcome: OutcomeReset}.send(w)
		return
	}
	defer s.active.Done()
	s.routes.ServeHTTP(w, r)
}

func (s *Server) enter(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	operators := strings.HasPrefix(path, "/control/") || strings.HasPrefix(path, "/oracle/")
	if s.stopped || s.down && !operators {
		return false
	}
	s.active.Add(1)
	return true
}

// Close lets late effects happen at once, waits for them and for running requests, and closes the
// journal. It returns what broke the journal, if anything did. Under httptest, close the Server first.
func (s *Server) Close() error {
	s.mu.Lock()
	already := s.stopped
	s.stopped = true
	s.mu.Unlock()
	s.release()
	s.active.Wait()
	if already {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.broken, s.journal.close())
}

// arrive numbers the request, chooses its fault and records both. When it cannot, it has answered.
func (s *Server) arrive(w http.ResponseWriter, r *http.Request, op Op, externalID string) (Request, bool) {
	wish, err := s.chooser.wished(op, r.Header.Get(headerFault))
	if err != nil {
		explained(http.StatusBadRequest, "unknown_fault", err).send(w)
		return Request{}, false
	}
	arrived, err := s.admit(op, externalID, r.Header.Get(headerKey), wish)
	if err != nil {
		explained(http.StatusInternalServerError, codeJournal, err).send(w)
		return Request{}, false
	}
	return arrived, true
}

func (s *Server) admit(op Op, externalID, key string, wish Fault) (Request, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	number := len(s.ledger.requests) + 1
	err := s.record(entry{
		Kind: kindRequest, At: s.now(), Request: number, Op: op,
		ExternalID: externalID, Key: key, Fault: s.chooser.next(op, number, wish),
	})
	if err != nil {
		return Request{}, err
	}
	return s.ledger.requests[number-1], nil
}

// answer records how the request ends before the client can know it.
func (s *Server) answer(w http.ResponseWriter, number int, r reply) {
	s.mu.Lock()
	err := s.record(entry{Kind: kindAnswer, At: s.now(), Request: number, Outcome: r.outcome, Status: r.status})
	s.mu.Unlock()
	if err != nil {
		r = explained(http.StatusInternalServerError, codeJournal, err)
	}
	r.send(w)
}

// record writes the entry to the file and then folds it. After a failed write nothing more is
// recorded, for the line may be torn. The caller holds mu.
func (s *Server) record(e entry) error {
	if s.broken != nil {
		return s.broken
	}
	if err := s.journal.append(e); err != nil {
		s.broken = fmt.Errorf("crmsim: write journal %s: %w", s.config.JournalPath, err)
		close(s.failed)
		return s.broken
	}
	if err := s.ledger.fold(e); err != nil {
		panic(err) // the entry was made from this very ledger
	}
	s.announce()
	return nil
}

// announce wakes those in Wait. The caller holds mu.
func (s *Server) announce() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

func (s *Server) conditions() conditions {
	return conditions{now: s.now(), retryAfter: s.config.RetryAfter}
}

// now has no monotonic reading, so that a time is the same before and after a trip through the file.
func (s *Server) now() time.Time { return s.config.Now().UTC().Round(0) }
