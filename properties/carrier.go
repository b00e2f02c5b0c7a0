package properties

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/properties/sim"
)

// carrier is the CRM of one run: the sandbox behind the wire, in which the run's
// operations have names of their own.
type carrier struct {
	wire    *wire
	run     string
	creates []sim.Fault
	chosen  int                  // of the vendor's answers, so far
	held    map[string][]letter  // by operation
	arrived map[string]time.Time // when the CRM last got a create of the operation
}

func newCarrier(w *wire, class crm.Class) *carrier {
	return &carrier{
		wire: w, run: rand.Text(), creates: createsFor(class, w.subject.Answers),
		held: map[string][]letter{}, arrived: map[string]time.Time{},
	}
}

// name is the operation's in the sandbox, where earlier runs left their leads. It
// has the form of an operation id.
func (c *carrier) name(operation string) string {
	h := sha256.Sum256([]byte(c.run + operation))
	s := hex.EncodeToString(h[:])
	return s[:8] + "-" + s[8:12] + "-5" + s[13:16] + "-a" + s[17:20] + "-" + s[20:32]
}

func (c *carrier) Connect() (crm.Connector, error) {
	return openRested(func() (crm.Connector, error) { return c.wire.subject.Connect(c.wire.url()) })
}

func (c *carrier) Faults() (ofCreates, ofFinds []sim.Fault) { return c.creates, finds }

func (c *carrier) Close() {}

func (c *carrier) Leads(operation string) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.wire.subject.Patience)
	defer cancel()
	return c.wire.subject.Sandbox.Leads(ctx, c.name(operation))
}

// Land forwards the request that was held back the longest.
func (c *carrier) Land(operation string) {
	if list := c.held[operation]; len(list) > 0 {
		c.held[operation] = list[1:]
		_, _, _, _ = c.wire.sandbox.Forward(list[0].Request, list[0].body) // nobody waits for its answer
		c.arrived[operation] = time.Now()
	}
}

// Carry gives the connector what is left of its deadline in real time. An answer
// that is withheld is waited for shortly, or every run would take seconds.
func (c *carrier) Carry(call sim.Call) sim.Passage {
	subject := c.wire.subject
	f := c.fault(call.Fault)
	c.wire.count(call)
	left := call.Left
	if f.answer == silence {
		left = min(left, subject.Short)
	}
	deadline := time.Now().Add(left)
	ctx, cancel := context.WithDeadline(call.Ctx, time.Now().Add(max(left, 0)+subject.Patience))
	defer cancel()
	t := &permit{lookup: call.Lookup, fault: f}
	var p sim.Passage
	c.wire.during(t, func() {
		if call.Lookup {
			p.Receipts, p.Err = c.find(ctx, call, deadline)
			return
		}
		receipt, err := call.Connector.Create(ctx, crm.Operation{
			ID: c.name(call.Operation.ID), Fields: subject.Fields, Deadline: deadline,
		})
		p.Receipts, p.Err = []crm.Receipt{receipt}, err
		if err != nil && crm.Classify(err).Outcome == crm.Unknown {
			select { // what may have left belongs to this call, though it comes when its deadline is over
			case <-t.seen:
			case <-time.After(subject.Short):
			}
		}
	})
	if late := time.Since(deadline); left > 0 && late > subject.Patience {
		p.Overdue = late
	}
	p.Creates, p.Held = t.creates, len(t.held) > 0
	if id := call.Operation.ID; p.Creates > 0 {
		c.held[id] = append(c.held[id], t.held...)
		c.arrived[id] = time.Now()
	}
	return p
}

// fault is what the wire does; of the vendor's answers, each in its turn.
func (c *carrier) fault(f sim.Fault) fault {
	list := vendors(f, c.wire.subject.Answers)
	if general, ok := faults[f]; ok {
		list = append(list, general)
	}
	c.chosen++
	return list[c.chosen%len(list)]
}

// find looks up. The engine has waited through the settle time, in which the
// sandbox's index may not have moved: so a lead that is not found is looked up
// again, until the settle time is over in real time too.
func (c *carrier) find(ctx context.Context, call sim.Call, deadline time.Time) ([]crm.Receipt, error) {
	id := call.Operation.ID
	settled := c.arrived[id].Add(call.Connector.Describe().Settle)
	for pause := time.Millisecond; ; pause = min(2*pause, time.Second) {
		receipts, err := call.Connector.Find(ctx, c.name(id), deadline)
		if call.Fault != sim.None || err != nil || time.Now().After(settled) {
			return receipts, err
		}
		leads, err := c.Leads(id)
		if err != nil || !misses(receipts, leads) {
			return receipts, nil // an error of the sandbox is met again by whoever judges
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return receipts, nil
		}
	}
}

// misses reports whether one of the leads was not found.
func misses(receipts []crm.Receipt, leads []string) bool {
	return slices.ContainsFunc(leads, func(id string) bool {
		return !slices.ContainsFunc(receipts, func(r crm.Receipt) bool { return r.CRMID == id })
	})
}
