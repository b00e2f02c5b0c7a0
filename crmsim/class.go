package crmsim

import (
	"fmt"
	"slices"
	"strings"
)

// A Class is what a CRM promises about a create that is sent twice.
type Class string

const (
	// IdempotencyKey remembers the answer given under a key for Config.KeyValidity.
	IdempotencyKey Class = "idempotency_key"
	// Upsert creates or updates on the external id, which is unique.
	Upsert Class = "upsert"
	// UniqueCreate refuses a second lead with one external id.
	UniqueCreate Class = "unique_create"
	// Lookup makes a lead on every create, and can search by external id.
	Lookup Class = "lookup"
	// None makes a lead on every create, and cannot search.
	None Class = "none"
)

var classes = []Class{IdempotencyKey, Upsert, UniqueCreate, Lookup, None}

// Classes lists every class, from the strongest promise to the weakest.
func Classes() []Class { return slices.Clone(classes) }

// ParseClass reads a class by its name.
func ParseClass(name string) (Class, error) {
	if slices.Contains(classes, Class(name)) {
		return Class(name), nil
	}
	return "", fmt.Errorf("crmsim: Class is %q: use one of %s", name, joined(classes))
}

// CanFind reports whether the class answers GET /leads.
func (c Class) CanFind() bool { return c != None }

// deduplicates reports whether a request that a proxy sends twice still makes one lead.
func (c Class) deduplicates() bool {
	return c == IdempotencyKey || c == Upsert || c == UniqueCreate
}

func joined[S ~string](names []S) string {
	words := make([]string, len(names))
	for i, name := range names {
		words[i] = string(name)
	}
	return strings.Join(words, ", ")
}
