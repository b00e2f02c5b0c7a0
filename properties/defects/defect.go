package defects

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/leadonce/leadonce/properties/sim"
)

// Defect is one mistake, as a change of our code.
type Defect struct {
	Name       string
	Wrong      string         // what it does, and whom it hurts
	Properties []sim.Property // that may catch it; empty when a test has to
	Package    string         // of that test, a folder of the module
	Test       string
	Edits      []Edit
}

// Edit puts new lines in the place of old ones.
type Edit struct {
	File     string // from the root of the module, with slashes
	Count    int    // how often the old lines occur
	Old, New string
}

// Parse reads a defect's file.
func Parse(text string) (Defect, error) {
	head, rest, _ := strings.Cut(text, "\n--- ")
	var d Defect
	for _, line := range strings.Split(strings.TrimSpace(head), "\n") {
		key, value, _ := strings.Cut(line, ": ")
		switch {
		case value == "":
			return d, fmt.Errorf("%q is not of the form key: value", line)
		case key == "name":
			d.Name = value
		case key == "wrong":
			d.Wrong = value
		case key == "property":
			if err := d.caughtBy(value); err != nil {
				return d, err
			}
		default:
			return d, fmt.Errorf("unknown key %q", key)
		}
	}
	if d.Name == "" || d.Wrong == "" || len(d.Properties) == 0 && d.Test == "" {
		return d, fmt.Errorf("it needs a name, what is wrong, and a property")
	}
	if rest == "" {
		return d, fmt.Errorf("it changes nothing")
	}
	for _, part := range strings.Split(rest, "\n--- ") {
		e, err := parseEdit(part)
		if err != nil {
			return d, err
		}
		d.Edits = append(d.Edits, e)
	}
	return d, nil
}

func (d *Defect) caughtBy(value string) error {
	if test, ok := strings.CutPrefix(value, "test "); ok {
		d.Package, d.Test, _ = strings.Cut(test, " ")
		if d.Test == "" {
			return fmt.Errorf("%q is not of the form test <package> <Test>", value)
		}
		return nil
	}
	for _, name := range strings.Split(value, "|") {
		p := sim.Property(name)
		if !slices.Contains(sim.Properties, p) {
			return fmt.Errorf("%q is no property", name)
		}
		d.Properties = append(d.Properties, p)
	}
	return nil
}

// parseEdit reads what stands behind the three dashes.
func parseEdit(part string) (Edit, error) {
	line, body, _ := strings.Cut(part, "\n")
	file, times, counted := strings.Cut(line, " ")
	e := Edit{File: file, Count: 1}
	if counted {
		n, err := strconv.Atoi(strings.TrimSuffix(times, " times"))
		if err != nil || n < 1 {
			return e, fmt.Errorf("%q is not of the form file 2 times", line)
		}
		e.Count = n
	}
	var opened, parted, closed bool
	body, opened = strings.CutPrefix(body, "<<<<\n")
	body, closed = strings.CutSuffix(strings.TrimRight(body, "\n"), ">>>>")
	e.Old, e.New, parted = strings.Cut(body, "====\n")
	if !opened || !parted || !closed || e.Old == "" {
		return e, fmt.Errorf("the change of %s is not of the form <<<< old ==== new >>>>", file)
	}
	return e, nil
}

// Apply returns the changed files by their names. It fails where the old lines do
// not occur as often as the defect says: then our code has moved on, and the defect
// has to follow.
func (d Defect) Apply(root string) (map[string]string, error) {
	files := map[string]string{}
	for _, e := range d.Edits {
		text, known := files[e.File]
		if !known {
			data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(e.File)))
			if err != nil {
				return nil, fmt.Errorf("defect %s: %w", d.Name, err)
			}
			text = string(data)
		}
		if n := strings.Count(text, e.Old); n != e.Count {
			return nil, fmt.Errorf("defect %s is stale: %s has these lines %d times, want %d:\n%s", d.Name, e.File, n, e.Count, e.Old)
		}
		files[e.File] = strings.ReplaceAll(text, e.Old, e.New)
	}
	return files, nil
}

// Overlay writes the changed files and the list of them into dir, and returns the
// path of the list, which is what go build -overlay reads.
func (d Defect) Overlay(root, dir string) (string, error) {
	files, err := d.Apply(root)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for name, text := range files {
		at := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("defect %s: %w", d.Name, err)
		}
		replace[filepath.Join(root, filepath.FromSlash(name))] = at
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list := filepath.Join(dir, "overlay.json")
	return list, os.WriteFile(list, data, 0o600)
}

// Load reads all defects of a folder, in the order of their names. A defect bears
// the name of its file.
func Load(folder string) ([]Defect, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.defect"))
	if err != nil {
		return nil, err
	}
	var list []Defect
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		d, err := Parse(string(text))
		if err == nil && d.Name+".defect" != filepath.Base(path) {
			err = fmt.Errorf("its name is %q", d.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		list = append(list, d)
	}
	return list, nil
}
