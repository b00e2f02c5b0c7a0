package restcrm

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/leadonce/leadonce/engine/yamlmistake"
)

const (
	maxDocument = 64 << 10 // bytes of a definition
	maxDepth    = 24       // of mappings and lists in each other
)

// node is a piece of the document and where it stands: its line, and the keys on
// the way to it.
type node struct {
	line    int
	key     string
	scalar  any // string, int64, uint64, float64, bool or nil
	list    []*node
	members []member
	kind    kind
}

type kind int

const (
	scalarKind kind = iota
	listKind
	mappingKind
)

type member struct {
	name  string
	value *node
}

// mistake is the one line that a person gets: file, line, key, what is wrong and
// how it is mended.
func mistake(file string, n *node, format string, args ...any) error {
	what := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	if n == nil {
		return fmt.Errorf("%s: %s", file, what)
	}
	if n.key == "" {
		return fmt.Errorf("%s:%d: %s", file, n.line, what)
	}
	if n.line == 0 { // the value stands elsewhere
		return fmt.Errorf("%s: %s: %s", file, shown(n.key), what)
	}
	return fmt.Errorf("%s:%d: %s: %s", file, n.line, shown(n.key), what)
}

// shown is a key as an error can show it: quoted keys can have anything in them.
func shown(key string) string {
	const most = 120 // bytes
	key = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, key)
	if len(key) > most {
		return strings.ToValidUTF8(key[:most], "") + "…"
	}
	return key
}

// parseDocument reads one YAML document. Anchors, aliases, tags and merges are
// refused: a reader of the file would have to expand them in the head.
func parseDocument(file string, document []byte) (root *node, err error) {
	if len(document) > maxDocument {
		return nil, mistake(file, nil, "the file has more than %d bytes; make it shorter", maxDocument)
	}
	defer func() {
		if recover() != nil { // the library panics over some documents
			root, err = nil, mistake(file, nil, "this is no YAML document; compare it with SHAPE.md")
		}
	}()
	document, line := yamlmistake.Text(document)
	if line > 0 {
		return nil, mistake(file, &node{line: line}, yamlmistake.NoText)
	}
	if line := tooDeep(document); line > 0 {
		return nil, mistake(file, &node{line: line}, "more than %d levels; make the document flatter", maxDepth)
	}
	parsed, err := parser.ParseBytes(document, 0)
	if err != nil {
		line, what := yamlmistake.Explain(err)
		if line == 0 {
			return nil, mistake(file, nil, "%s", what)
		}
		return nil, mistake(file, &node{line: line}, "%s", what)
	}
	switch docs := parsed.Docs; {
	case len(docs) > 1:
		return nil, mistake(file, beginning(docs[1]), "more than one YAML document; keep one, without ---")
	case len(docs) == 0 || docs[0].Body == nil:
		return nil, mistake(file, nil, "the file is empty; describe the CRM in it as SHAPE.md says")
	}
	c := converter{file: file}
	root = c.convert(parsed.Docs[0].Body, "", 0)
	return root, c.err
}

// beginning is where a document begins; nil when nothing says so.
func beginning(d *ast.DocumentNode) *node {
	switch {
	case d.Start != nil:
		return &node{line: d.Start.Position.Line}
	case d.Body != nil && d.Body.GetToken() != nil:
		return &node{line: d.Body.GetToken().Position.Line}
	}
	return nil
}

// tooDeep is the line at which the nesting exceeds what parsers that recurse
// should be given; 0 when it never does.
func tooDeep(document []byte) int {
	open := 0
	for i, line := range strings.Split(string(document), "\n") {
		indent := line[:len(line)-len(strings.TrimLeft(line, " -?:"))]
		if strings.Count(indent, "-")+strings.Count(indent, "?") > maxDepth {
			return i + 1
		}
		open += strings.Count(line, "{") + strings.Count(line, "[")
		if open-strings.Count(line, "}")-strings.Count(line, "]") > 8*maxDepth {
			return i + 1
		}
		open -= strings.Count(line, "}") + strings.Count(line, "]")
		open = max(open, 0)
	}
	return 0
}

// converter turns the library's tree into ours and keeps the first mistake.
type converter struct {
	file string
	err  error
}

func (c *converter) fail(n *node, format string, args ...any) {
	if c.err == nil {
		c.err = mistake(c.file, n, format, args...)
	}
}

func (c *converter) convert(from ast.Node, key string, depth int) *node {
	n := &node{key: key, line: 1}
	if t := from.GetToken(); t != nil {
		n.line = t.Position.Line
	}
	if depth > maxDepth {
		c.fail(n, "more than %d levels; make the document flatter", maxDepth)
		return n
	}
	switch from := from.(type) {
	case *ast.MappingNode:
		c.mapping(n, from.Values, depth)
	case *ast.MappingValueNode:
		c.mapping(n, []*ast.MappingValueNode{from}, depth)
	case *ast.SequenceNode:
		n.kind = listKind
		for i, v := range from.Values {
			n.list = append(n.list, c.convert(v, fmt.Sprintf("%s[%d]", key, i), depth+1))
		}
	case *ast.StringNode:
		n.scalar = from.Value
	case *ast.LiteralNode:
		n.scalar = from.Value.Value
	case *ast.IntegerNode:
		n.scalar = from.Value
	case *ast.FloatNode:
		n.scalar = from.Value
	case *ast.BoolNode:
		n.scalar = from.Value
	case *ast.NullNode:
	default:
		c.fail(n, "YAML's %s is not used here; write the value out", strings.ToLower(from.Type().YAMLName()))
	}
	return n
}

func (c *converter) mapping(n *node, values []*ast.MappingValueNode, depth int) {
	n.kind = mappingKind
	for _, v := range values {
		name, ok := v.Key.(*ast.StringNode)
		if _, merge := v.Key.(*ast.MergeKeyNode); merge {
			c.fail(&node{line: v.Key.GetToken().Position.Line, key: n.key}, "YAML's merge is not used here; write the keys out")
			return
		}
		if !ok {
			c.fail(&node{line: v.Key.GetToken().Position.Line, key: n.key}, "a key must be a plain text; put quotes around it")
			return
		}
		if n.line == 0 || len(n.members) == 0 {
			n.line = name.GetToken().Position.Line
		}
		key := name.Value
		if n.key != "" {
			key = n.key + "." + key
		}
		value := c.convert(v.Value, key, depth+1)
		if value.kind == scalarKind && value.scalar == nil {
			value.line = name.GetToken().Position.Line
		}
		if n.get(name.Value) != nil {
			c.fail(&node{line: name.GetToken().Position.Line, key: key}, "the key stands twice; keep one")
			return
		}
		n.members = append(n.members, member{name.Value, value})
	}
}

// get is the value of a key; nil when it is not there.
func (n *node) get(name string) *node {
	for _, m := range n.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// isSet reports whether the key is there and has a value.
func (n *node) isSet() bool { return n != nil && (n.kind != scalarKind || n.scalar != nil) }

// at is the value of a key, or the place where it should stand.
func (n *node) at(name string) *node {
	if value := n.get(name); value != nil {
		return value
	}
	if n.key != "" {
		name = n.key + "." + name
	}
	return &node{line: n.line, key: name}
}

// formerly are names that other descriptions of REST services use.
var formerly = map[string]string{
	"capability": "class", "key_ttl": "key_validity", "url": "base_url", "params": "query", "message": "reason",
}

// keys calls the reader of every key that is there, and refuses the others. A
// key without a value counts as not there.
func (l *loader) keys(n *node, readers map[string]func(*node)) {
	if n.kind != mappingKind {
		l.fail(n, "give a mapping of keys")
		return
	}
	known := strings.Join(slices.Sorted(maps.Keys(readers)), ", ")
	for _, m := range n.members {
		switch {
		case readers[m.name] != nil:
		case readers[formerly[m.name]] != nil:
			l.fail(m.value, "unknown key; it is called %s", formerly[m.name])
		default:
			l.fail(m.value, "unknown key; the keys here are %s", known)
		}
	}
	l.some(n, readers)
}

// some is keys for a mapping that has others too.
func (l *loader) some(n *node, readers map[string]func(*node)) {
	for _, m := range n.members {
		if read := readers[m.name]; read != nil && m.value.isSet() {
			read(m.value)
		}
	}
}

// text is the scalar as a text. Numbers are refused, for YAML changes them: 0123
// would become 83.
func (l *loader) text(n *node) string {
	s, ok := n.scalar.(string)
	if n.kind != scalarKind || !ok {
		l.fail(n, "give a text; put quotes around a number")
	}
	return s
}

// duration reads one such as 500ms, 20s or 24h: positive, at most 366 days.
func (l *loader) duration(n *node) time.Duration {
	s, _ := n.scalar.(string)
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 || d > 366*24*time.Hour {
		l.fail(n, "give a duration such as 500ms, 20s or 24h, at most 366 days")
		return 0
	}
	return d
}

// number reads a positive number up to the limit.
func (l *loader) number(n *node, limit float64) float64 {
	var f float64
	switch v := n.scalar.(type) {
	case int64:
		f = float64(v)
	case uint64:
		f = float64(v)
	case float64:
		f = v
	}
	if !(f > 0 && f <= limit) {
		l.fail(n, "give a number above 0, at most %v", limit)
		return 1
	}
	return f
}
