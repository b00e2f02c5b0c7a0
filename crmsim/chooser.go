package crmsim

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// A Script is the faults of the next requests in order, creates and finds apart. An entry NoFault is
// a request without a fault. When a list is used up, probability decides again.
type Script struct {
	Creates []Fault `json:"creates"`
	Finds   []Fault `json:"finds"`
}

func (s Script) validate(class Class) error {
	for _, fault := range s.Creates {
		if err := checkPossible(fault, class, Create); err != nil {
			return err
		}
	}
	for _, fault := range s.Finds {
		if err := checkPossible(fault, class, Find); err != nil {
			return err
		}
	}
	return nil
}

func (s Script) clone() Script {
	return Script{Creates: slices.Clone(s.Creates), Finds: slices.Clone(s.Finds)}
}

type weighted struct {
	fault Fault
	rate  float64
}

// chooser decides the fault of a request from the script, else from the seed and the request's number.
type chooser struct {
	class  Class
	seed   uint64
	rates  map[Op][]weighted
	script Script
}

func newChooser(c Config) *chooser {
	ch := &chooser{class: c.Class, seed: c.Seed, script: c.Script.clone(), rates: map[Op][]weighted{}}
	for _, op := range both {
		spread := Spread(c.Class, op)
		for _, b := range behaviours {
			rate := c.Rates[b.fault]
			if c.Faults > 0 && slices.Contains(spread, b.fault) {
				rate = c.Faults / float64(len(spread))
			}
			if rate > 0 && b.possible(c.Class, op) {
				ch.rates[op] = append(ch.rates[op], weighted{b.fault, rate})
			}
		}
	}
	return ch
}

// next takes the fault of request number n; wish, if not empty, is what the request itself asked for.
func (c *chooser) next(op Op, n int, wish Fault) Fault {
	if wish != "" {
		return wish
	}
	list := &c.script.Creates
	if op == Find {
		list = &c.script.Finds
	}
	if len(*list) > 0 {
		fault := (*list)[0]
		*list = (*list)[1:]
		return fault
	}
	return c.draw(op, n)
}

// draw depends on nothing but the seed, the operation and n, so a restarted CRM goes on as it would have.
func (c *chooser) draw(op Op, n int) Fault {
	chance := rand.New(rand.NewPCG(c.seed, uint64(n))).Float64()
	for _, w := range c.rates[op] {
		if chance < w.rate {
			return w.fault
		}
		chance -= w.rate
	}
	return NoFault
}

// wished reads the fault a request asks for by its header; empty means none was named.
func (c *chooser) wished(op Op, header string) (Fault, error) {
	if header == "" {
		return "", nil
	}
	if err := checkPossible(Fault(header), c.class, op); err != nil {
		return "", fmt.Errorf("header %s: %w", headerFault, err)
	}
	return Fault(header), nil
}
