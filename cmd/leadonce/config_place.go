package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/leadonce/leadonce/engine/yamlmistake"
)

// document is YAML, and where it comes from.
type document struct {
	name string // of the file, of a flag, or of a variable of the environment
	file bool   // lines are worth naming
	data []byte
}

// at is a place in the document as errors name it; line 0 is none.
func (d document) at(line int) string {
	if !d.file || line == 0 {
		return d.name
	}
	return fmt.Sprintf("%s:%d", d.name, line)
}

// line is the text of a line, from 1; "" when there is none.
func (d document) line(n int) string {
	lines := strings.Split(string(d.data), "\n")
	if n < 1 || n > len(lines) {
		return ""
	}
	return lines[n-1]
}

// second is the line of the second document in it; 0 when there is none.
func (d document) second() int {
	seen := false
	for _, t := range lexer.Tokenize(string(d.data)) {
		switch {
		case t.Type == token.DocumentHeaderType && seen:
			return t.Position.Line
		case t.Type != token.CommentType:
			seen = true
		}
	}
	return 0
}

// maxFile is how many bytes a file of ours may have that a person writes.
const maxFile = 1 << 20

// readFile reads one that a person names and writes. mend is what to do when it is not
// there.
func readFile(path, mend string) (document, error) {
	d := document{name: path, file: true}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return d, mistake("%s: no such file; %s", path, mend)
	}
	if err != nil {
		return d, mistake("%v; make it readable, or name another file", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return d, mistake("%s: this is a directory; name a file", path)
	}
	if d.data, err = io.ReadAll(io.LimitReader(file, maxFile+1)); err != nil {
		return d, mistake("%v; make it readable, or name another file", err)
	}
	if len(d.data) > maxFile {
		return d, mistake("%s: the file has more than %d bytes; make it shorter, or name another one", path, maxFile)
	}
	text, line := yamlmistake.Text(d.data)
	if line > 0 {
		return d, mistake("%s: %s", d.at(line), yamlmistake.NoText)
	}
	d.data = text
	return d, nil
}

// sources are where the values of a configuration come from: the file, and what was
// laid over it.
type sources struct {
	file document
	over []laid
}

// has reports whether the file gives the key a value, be it the zero one.
func (s sources) has(key string) (found bool) {
	defer func() {
		if recover() != nil { // as in decode
			found = false
		}
	}()
	file, err := parser.ParseBytes(s.file.data, 0)
	if err != nil {
		return false
	}
	path, err := yaml.PathString("$." + key)
	if err != nil {
		return false
	}
	node, err := path.FilterFile(file)
	return err == nil && node.Type() != ast.NullType
}

// laid is a key that a flag or the environment set.
type laid struct{ key, name string }

// place puts before a mistake about a key where the key's value stands.
func (s sources) place(err error) error {
	var wrong *configError
	if !errors.As(err, &wrong) || wrong.key == "" || s.file.name == "" {
		return err
	}
	where := s.file.at(lineOf(s.file.data, wrong.key))
	if i := slices.IndexFunc(s.over, func(l laid) bool { return l.key == wrong.key }); i >= 0 {
		where = s.over[i].name
	}
	return mistake("%s: %s", where, wrong.text)
}
