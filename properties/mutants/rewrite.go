package main

import (
	"bytes"
	"fmt"
	"go/token"
	"sort"
)

// helpers is the package that the instrumented copies call.
const helpers = "github.com/leadonce/leadonce/properties/mutants/mutant"

// edit replaces the bytes [at,end) of a file. It belongs to one mutant, or to none
// (0) when the copy needs it whatever is mutated.
type edit struct {
	at, end int
	text    string
	closes  bool // it stands behind what it belongs to
	mutant  int
}

// wrap puts text before and behind [from,to). What is wrapped first is outside.
func (s *source) wrap(id int, from, to token.Pos, before, behind string) {
	a, b := s.offset(from), s.offset(to)
	s.edits = append(s.edits, edit{a, a, before, false, id}, edit{b, b, behind, true, id})
}

// replace puts text in the place of [from,to), which nothing else may touch.
func (s *source) replace(id int, from, to token.Pos, text string) {
	s.edits = append(s.edits, edit{s.offset(from), s.offset(to), text, false, id})
}

// span is where a mutant's text stands in the instrumented copy.
type span struct{ mutant, from, to int }

// instrument is the file with every mutation but the dropped ones. It keeps the
// lines.
func (s *source) instrument(dropped map[int]bool) ([]byte, []span) {
	var list []edit
	for _, e := range s.edits {
		if !dropped[e.mutant] {
			list = append(list, e)
		}
	}
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	// At one place, what closes comes first, the innermost before the outer ones;
	// then what opens, the outermost first.
	sort.SliceStable(order, func(i, j int) bool {
		x, y := list[order[i]], list[order[j]]
		switch {
		case x.at != y.at:
			return x.at < y.at
		case x.closes != y.closes:
			return x.closes
		case x.closes:
			return order[i] > order[j]
		default:
			return order[i] < order[j]
		}
	})
	var out bytes.Buffer
	spans := map[int]*span{}
	at := 0
	for _, i := range order {
		e := list[i]
		out.Write(s.text[at:e.at])
		if spans[e.mutant] == nil {
			spans[e.mutant] = &span{e.mutant, out.Len(), 0}
		}
		out.WriteString(e.text)
		spans[e.mutant].to = out.Len()
		at = e.end
	}
	out.Write(s.text[at:])
	delete(spans, 0)
	var flat []span
	for _, x := range spans {
		flat = append(flat, *x)
	}
	return out.Bytes(), flat
}

// on is the switch of a mutant, in the copy's words.
func on(id int) string { return fmt.Sprintf("mutant.On(%d)", id) }
