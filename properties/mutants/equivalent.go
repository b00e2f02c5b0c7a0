package main

import (
	"fmt"
	"os"
	"strings"
)

// equivalent is a mutant that somebody looked at: nothing that the engine promises
// depends on it.
type equivalent struct {
	key string // Mutant.Key
	why string
}

// readEquivalents reads a file of pairs of lines: the key of a mutant, and behind a
// tab why it cannot be noticed. Lines that start with # are comments.
func readEquivalents(name string) ([]equivalent, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var list []equivalent
	for i, line := range strings.Split(string(data), "\n") {
		switch {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
		case !strings.HasPrefix(line, "\t"):
			list = append(list, equivalent{key: line})
		case len(list) == 0 || list[len(list)-1].why != "":
			return nil, fmt.Errorf("%s:%d: a reason without a mutant", name, i+1)
		default:
			list[len(list)-1].why = strings.TrimSpace(line)
		}
	}
	return list, nil
}

// match finds the mutants that the list names. What it names and is no mutant, or
// names twice or without a reason, is a complaint.
func match(list []equivalent, mutants []Mutant) (map[int]string, []string) {
	byKey := map[string]int{}
	for _, m := range mutants {
		byKey[m.Key()] = m.ID
	}
	found := map[int]string{}
	var complaints []string
	for _, e := range list {
		id, ok := byKey[e.key]
		switch {
		case !ok:
			complaints = append(complaints, "there is no such mutant any more: "+e.key)
		case e.why == "":
			complaints = append(complaints, "it is not said why nobody can notice it: "+e.key)
		case found[id] != "":
			complaints = append(complaints, "it is listed twice: "+e.key)
		default:
			found[id] = e.why
		}
	}
	return found, complaints
}
