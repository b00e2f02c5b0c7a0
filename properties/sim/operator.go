package sim

import (
	"context"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/job"
)

var operator = job.Signature{By: "ann", Reason: "asked the CRM's people"}

// acts of an operator. The first three are right, if they are done at all.
const (
	resolves = iota // by what the CRM truly has
	requeues
	discards
	errs   // resolves with an id that is not the lead's
	doubts // whether the log has all that was sent
	acts
)

// operate lets an operator act on a job. What he has seen in the CRM is about the
// job as it is when he says it.
func (w *world) operate(s Step) {
	v := w.job(s.A)
	if v == nil || w.plan.Faults>>Operated&1 == 0 {
		return
	}
	w.happen(Operated)
	a := w.operator(v, index(s.N, acts))
	if s.F == 0 {
		w.finish(a)
		return
	}
	for a.at.port == now || a.at.port == reading { // it stands before it writes
		w.step(a, None)
	}
}

// operator starts the act. It is its own process, like `leadonce job …`.
func (w *world) operator(v *view, act int) *actor {
	p := w.processes[0]
	key := v.state.Key
	var leads []string
	if v.enquiry != nil {
		leads = w.inspect(w.at(v)).made()
	}
	a := &actor{name: "the operator (" + actNames[act] + ")", process: p, human: true}
	return w.spawn(a, func() {
		ctx := context.Background()
		var err error
		switch act {
		case requeues:
			_, err = p.engine.Requeue(ctx, key, operator)
		case discards:
			_, err = p.engine.Discard(ctx, key, operator)
		case errs:
			v.careless = true
			_, err = p.engine.Resolve(ctx, key, v.state.Step, "L-wrong", operator)
		case doubts:
			_, err = p.engine.Doubt(ctx, v.stream, operator)
		default:
			err = resolve(ctx, p.engine, key, v.state.Step, leads)
		}
		if err != nil {
			w.tell("    the operator is refused: %v", err)
		}
	})
}

var actNames = [acts]string{"answer from the CRM", "requeue", "discard", "wrong answer", "doubt"}

func resolve(ctx context.Context, e *engine.Engine, key job.Key, step string, leads []string) error {
	var err error
	if len(leads) > 0 {
		_, err = e.Resolve(ctx, key, step, leads[0], operator)
	} else {
		_, err = e.ResolveAbsent(ctx, key, step, operator)
	}
	return err
}
