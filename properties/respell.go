package properties

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
)

// node is a JSON document whose members keep their order, and its numbers their
// spelling.
type node struct {
	open    byte // '{', '[' or 0
	members []member
	scalar  any // string, json.Number, bool or nil
}

type member struct {
	name  string
	value *node
}

// parseNode reads valid JSON.
func parseNode(raw []byte) *node {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return readNode(d)
}

func readNode(d *json.Decoder) *node {
	token, err := d.Token()
	if err != nil {
		panic(err) // ParseUpdate took it for valid
	}
	open, ok := token.(json.Delim)
	if !ok {
		return &node{scalar: token}
	}
	n := &node{open: byte(open)}
	for d.More() {
		var name string
		if open == '{' {
			key, _ := d.Token()
			name = key.(string)
		}
		n.members = append(n.members, member{name, readNode(d)})
	}
	_, _ = d.Token()
	return n
}

// writer spells a document.
type writer struct {
	bytes.Buffer
	again bool // in another way: with spaces, escapes and the members the other way round
}

func spell(n *node) []byte {
	w := &writer{}
	w.node(n)
	return w.Bytes()
}

// respell is the same document in another spelling.
func respell(raw []byte) []byte {
	w := &writer{again: true}
	w.node(parseNode(raw))
	return w.Bytes()
}

func (w *writer) node(n *node) {
	if n.open == 0 {
		w.scalar(n.scalar)
		return
	}
	list := n.members
	if w.again && n.open == '{' && !namedAlike(list) {
		list = slices.Clone(list)
		slices.Reverse(list)
	}
	w.WriteByte(n.open)
	for i, m := range list {
		if i > 0 {
			w.WriteByte(',')
		}
		if w.again {
			w.WriteString(" \n")
		}
		if n.open == '{' {
			w.text(m.name)
			w.WriteByte(':')
			if w.again {
				w.WriteByte(' ')
			}
		}
		w.node(m.value)
	}
	w.WriteByte(n.open + 2) // the closing one, in ASCII
}

// namedAlike reports whether two members have one name: their order counts then.
func namedAlike(list []member) bool {
	names := map[string]bool{}
	for _, m := range list {
		if name := strings.ToLower(m.name); names[name] {
			return true
		} else {
			names[name] = true
		}
	}
	return false
}

func (w *writer) scalar(v any) {
	switch v := v.(type) {
	case string:
		w.text(v)
	case nil:
		w.WriteString("null")
	default:
		fmt.Fprint(w, v)
	}
}

func (w *writer) text(s string) {
	if !w.again {
		b, _ := json.Marshal(s)
		w.Write(b)
		return
	}
	w.WriteByte('"')
	for _, unit := range utf16.Encode([]rune(s)) {
		fmt.Fprintf(w, `\u%04X`, unit)
	}
	w.WriteByte('"')
}

// each calls f for every value of the document, with what puts another one in its
// place and, for a member, what removes it. Both work on the document itself.
func (n *node) each(f func(path string, at *node, remove func() (undo func()))) { n.walk("", f) }

func (n *node) walk(path string, f func(string, *node, func() func())) {
	for i := range n.members {
		m := n.members[i]
		f(path+"/"+m.name, m.value, func() func() {
			before := n.members
			n.members = slices.Delete(slices.Clone(before), i, i+1)
			return func() { n.members = before }
		})
		m.value.walk(path+"/"+m.name, f)
	}
}
