package restcrm

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
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
	return fmt.Errorf("%s:%d: %s: %s", file, n.line, n.key, what)
}

// parseDocument reads one YAML document. Anchors, aliases, tags and merges are
// refused: a reader of the file would have to expand them in the head.
func parseDocument(file string, document []byte) (root *node, err error) {
	if len(document) > maxDocument {
		return nil, mistake(file, nil, "the file has more than %d bytes; make it shorter", maxDocument)
	}
	defer func() {
		if recover() != nil { // the library panics over some documents
			root, err = nil, mistake(file, nil, "this is not a YAML document; compare it with SHAPE.md")
		}
	}()
	if line := tooDeep(document); line > 0 {
		return nil, mistake(file, &node{line: line}, "more than %d levels; make the document flatter", maxDepth)
	}
	parsed, err := parser.ParseBytes(document, 0)
	if err != nil {
		return nil, unreadable(file, err)
	}
	var bodies []ast.Node
	for _, d := range parsed.Docs {
		if d.Body != nil {
			bodies = append(bodies, d.Body)
		}
	}
	if len(bodies) != 1 || len(parsed.Docs) != 1 {
		return nil, mistake(file, nil, "%d YAML documents; keep exactly one in the file", len(bodies))
	}
	c := converter{file: file}
	root = c.convert(bodies[0], "", 0)
	return root, c.err
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

var quoted = regexp.MustCompile(`"(\\.|[^"\\])*"`)

// unreadable is the library's message in one line and without excerpts of the
// document.
func unreadable(file string, err error) error {
	var located interface {
		GetToken() *token.Token
		GetMessage() string
	}
	if l, ok := err.(interface {
		GetToken() *token.Token
		GetMessage() string
	}); ok {
		located = l
	}
	if located == nil || located.GetToken() == nil {
		return mistake(file, nil, "this is not a YAML document; compare it with SHAPE.md")
	}
	message, _, _ := strings.Cut(located.GetMessage(), "\n")
	at := &node{line: located.GetToken().Position.Line}
	return mistake(file, at, "%s; mend the YAML", quoted.ReplaceAllString(message, `"…"`))
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
		c.fail(n, "%s of YAML are not used here; write the value out", strings.ToLower(from.Type().YAMLName()))
	}
	return n
}

func (c *converter) mapping(n *node, values []*ast.MappingValueNode, depth int) {
	n.kind = mappingKind
	for _, v := range values {
		name, ok := v.Key.(*ast.StringNode)
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
	var known []string
	for name := range readers {
		known = append(known, name)
	}
	slices.Sort(known)
	for _, m := range n.members {
		read, ok := readers[m.name]
		switch {
		case !ok && formerly[m.name] != "" && readers[formerly[m.name]] != nil:
			l.fail(m.value, "unknown key; it is called %s", formerly[m.name])
		case !ok:
			l.fail(m.value, "unknown key; the keys here are %s", strings.Join(known, ", "))
		case m.value.kind == scalarKind && m.value.scalar == nil:
		default:
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
