package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
)

// rounds bounds how often the copies are compiled until they do.
const rounds = 8

// built is one build of every test binary, with every mutation in it.
type built struct {
	folder  string // of the binaries
	dropped map[int]bool
}

// build compiles the suites over instrumented copies of the files, and drops the
// mutations that do not compile.
func build(root, work string, files []*source, suites []suite, total int) (built, error) {
	b := built{folder: filepath.Join(work, "bin"), dropped: map[int]bool{}}
	if err := os.MkdirAll(b.folder, 0o755); err != nil {
		return b, err
	}
	for range rounds {
		overlay, spans, err := write(root, work, files, b.dropped)
		if err != nil {
			return b, err
		}
		complaints, err := compile(root, overlay, files)
		if err != nil {
			return b, err
		}
		if complaints == nil {
			return b, b.tests(root, overlay, suites)
		}
		before := len(b.dropped)
		for _, c := range complaints {
			b.drop(spans[c.path], c)
		}
		if len(b.dropped) == before || len(b.dropped) > total/5 {
			return b, fmt.Errorf("the instrumented copies do not compile, and no mutation is to blame: %v", complaints)
		}
	}
	return b, errors.New("the instrumented copies do not compile after all rounds")
}

// placed is where the mutants stand in one copy.
type placed struct {
	text  []byte
	spans []span
}

func write(root, work string, files []*source, dropped map[int]bool) (string, map[string]placed, error) {
	replace, spans := map[string]string{}, map[string]placed{}
	for i, s := range files {
		text, list := s.instrument(dropped)
		name := filepath.Join(work, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(name, text, 0o644); err != nil {
			return "", nil, err
		}
		replace[filepath.Join(root, filepath.FromSlash(s.path))] = name
		spans[s.path] = placed{text, list}
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", nil, err
	}
	overlay := filepath.Join(work, "overlay.json")
	return overlay, spans, os.WriteFile(overlay, data, 0o644)
}

// complaint is an error of the compiler.
type complaint struct {
	path         string
	line, column int
	text         string
}

var complained = regexp.MustCompile(`(?m)^(?:\./)?(\S+\.go):(\d+):(\d+): (.*)$`)

// compile tells what the compiler has against the copies.
func compile(root, overlay string, files []*source) ([]complaint, error) {
	args := []string{"build", "-overlay", overlay, "-gcflags=-e"}
	seen := map[string]bool{}
	for _, s := range files {
		if folder := "./" + filepath.ToSlash(filepath.Dir(s.path)); !seen[folder] {
			seen[folder] = true
			args = append(args, folder)
		}
	}
	_, err := goTool(root, args...)
	if err == nil {
		return nil, nil
	}
	var list []complaint
	for _, m := range complained.FindAllStringSubmatch(err.Error(), -1) {
		line, _ := strconv.Atoi(m[2])
		column, _ := strconv.Atoi(m[3])
		list = append(list, complaint{filepath.ToSlash(m[1]), line, column, m[4]})
	}
	if len(list) == 0 {
		return nil, err
	}
	return list, nil
}

// drop leaves out the mutation that a complaint is about: the smallest one around
// its place, or else every one in its line.
func (b *built) drop(p placed, c complaint) {
	lines := bytes.SplitAfter(p.text, []byte("\n"))
	start := 0
	for i := 0; i < c.line-1 && i < len(lines); i++ {
		start += len(lines[i])
	}
	at, end := start+c.column-1, start
	if c.line-1 < len(lines) {
		end += len(lines[c.line-1])
	}
	smallest, found := span{}, false
	for _, s := range p.spans {
		if s.from <= at && at <= s.to && (!found || s.to-s.from < smallest.to-smallest.from) {
			smallest, found = s, true
		}
	}
	if found {
		b.dropped[smallest.mutant] = true
		return
	}
	for _, s := range p.spans {
		if s.from < end && s.to >= start {
			b.dropped[s.mutant] = true
		}
	}
}

// tests builds the binaries.
func (b *built) tests(root, overlay string, suites []suite) error {
	for _, s := range suites {
		if _, err := goTool(root, "test", "-c", "-vet=off", "-overlay", overlay, "-o", b.binary(s), "./"+s.folder); err != nil {
			return err
		}
	}
	return nil
}

func (b *built) binary(s suite) string {
	return filepath.Join(b.folder, filepath.Base(s.folder)+".test")
}
