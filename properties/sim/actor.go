package sim

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// actor is one flow of the engine's code: a worker, a delivery, or an operator's
// act. It stands still at every call of a port, until the scheduler lets it make
// that call.
type actor struct {
	name     string
	process  *process
	life     int // of the process
	on       *coroutine
	at       point
	dying    bool
	worker   bool
	human    bool   // an operator
	fence    uint64 // of its newest claim
	fenced   string // and that claim's stream
	claimed  int64  // when, in nanoseconds of the true time
	request  int    // its newest create, of the operation
	troubled bool   // a call of the log failed during this turn
	failures int    // and how many did
	began    int    // calls of ports before this turn
	receipts []receipt
	enquiry  *enquiry  // of a delivery
	entered  int       // calls of ports before its newest call of the connector
	asked    time.Time // until when the answer in its hands asks to leave the CRM alone
	informed bool      // its last call brought an answer of the CRM, for the explorer
	history  uint64    // digest of what it has been told, for the explorer
}

// receipt is a CRM id that the actor has been told.
type receipt struct{ operation, crmID string }

// point is a call of a port that is about to be made.
type point struct {
	port port
	what string // the event that is appended, or the stream that is read
}

// killed is what ends a coroutine whose process died.
type killed struct{}

// spawn makes an actor that stands before its first call.
func (w *world) spawn(a *actor, body func()) *actor {
	a.life = a.process.generation
	a.on = w.stage.enter(func() {
		defer func() {
			if p := recover(); p != nil && p != any(killed{}) {
				w.breaks(true, NoPanic, "%s: %v\n%s", a.name, p, debug.Stack())
			}
		}()
		body()
	})
	w.actors = append(w.actors, a)
	w.advance(a)
	return a
}

// advance takes the actor to its next call.
func (w *world) advance(a *actor) {
	before := w.current
	w.current = a
	a.at, _ = a.on.resume()
	w.current = before
	if a.at.port == ended {
		w.stage.leave(a.on)
		w.remove(a)
	}
}

// step makes the call at which the actor stands, with the fault, and takes it to
// the next one.
func (w *world) step(a *actor, f Fault) {
	if a.at.port == ended {
		return
	}
	w.calls++
	if f != None {
		w.happen(f)
	}
	if w.story != nil && a.at.port != now && a.at.port != idle {
		w.tellStep(a, f)
	}
	if a.fence > 0 && w.now.UnixNano()-a.claimed > int64(lease) {
		w.happen(Paused)
	}
	if w.digests {
		w.learn(a, f)
	}
	w.next = f
	w.advance(a)
	w.next = None
}

func (w *world) tellStep(a *actor, f Fault) {
	what := a.name + " " + portNames[a.at.port]
	if a.at.what != "" && (a.at.port == creating || a.at.port == finding) {
		what += " for the"
	}
	if a.at.what != "" {
		what += " " + strings.TrimSuffix(a.at.what, ".v1")
	}
	if f != None {
		what += ": " + f.String()
	}
	w.tell("%s", what)
}

// await is where the code of an actor stands still. It returns what happens to
// the call.
func (w *world) await(p point) Fault {
	a := w.current
	if a == nil {
		return None // the judge's own calls
	}
	if !a.pauses(p) {
		panic(killed{})
	}
	f := w.next
	w.next = None
	switch f {
	case AppendRefused, AppendLost, AckLost, AppendLate, ReadRefused, ReadCut, ReadStale:
		a.troubled = true
		a.failures++
	}
	return f
}

// pauses stands still before a call. It reports whether the actor lives on.
func (a *actor) pauses(before point) bool {
	if !a.dying {
		a.on.yield(before)
	}
	return !a.dying
}

// stop ends the actor where it stands.
func (w *world) stop(a *actor) {
	if a.at.port == ended {
		return
	}
	a.dying = true
	w.advance(a)
}

func (w *world) remove(a *actor) {
	if i := slices.Index(w.actors, a); i >= 0 {
		w.actors = slices.Delete(w.actors, i, i+1)
	}
}

// reach is the most calls that a step lets an actor make.
const reach = 200

// run lets the actor make n calls and one more, that with the f-th fault.
func (w *world) run(a *actor, n, f int) {
	for i := 0; i <= n && a.at.port != ended && w.broken == nil; i++ {
		fault := None
		if i == n {
			fault = w.fault(a.at.port, f)
		}
		w.step(a, fault)
	}
}

// until lets the actor go on to its next call of the port, and make it with the
// f-th fault. It ends early where the actor has nothing to do.
func (w *world) until(a *actor, target port, f int) {
	for range reach {
		if w.broken != nil || a.at.port == ended || a.at.port == target {
			break
		}
		if w.step(a, None); a.at.port == idle {
			break
		}
	}
	w.step(a, w.fault(a.at.port, f))
}

// finish lets the actor come to its end, or to where it has nothing to do.
func (w *world) finish(a *actor) {
	most := reach
	if w.stepped {
		most *= len(leadSteps)
	}
	for range most {
		if a.at.port == ended || a.at.port == idle || w.broken != nil {
			return
		}
		w.step(a, None)
	}
	w.breaks(true, Ends, "%s makes more than %d calls in a row", a.name, most)
}

func (a *actor) String() string { return fmt.Sprintf("%s at %s", a.name, portNames[a.at.port]) }
