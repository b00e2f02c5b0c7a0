package projections

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// foldVersion is raised whenever the same events give other rows than before:
// when job.State.Evolve or a recorder changes. A changed table or a changed
// field of the state needs no raise, fileVersion sees it.
const foldVersion = 1

// applicationID is in the file's header: "lerm".
const applicationID = 0x6c65726d

// fileVersion is in the header of every file that this release feeds. Any other
// number means that the file was written by other rules.
var fileVersion = versionOf(foldVersion, models, reflect.TypeFor[storedState]())

func versionOf(fold int, list []model, state reflect.Type) int64 {
	h := sha256.New()
	fmt.Fprintln(h, fold, checkpointsTable)
	for _, m := range list {
		fmt.Fprintln(h, m.name, m.tables, m.derived)
	}
	fmt.Fprintln(h, shape(state))
	// user_version has 32 bits with a sign; 0 is a new file's.
	return int64(binary.BigEndian.Uint32(h.Sum(nil))>>1) | 1
}

// shape spells a type with all its fields, so that two releases that agree on
// it read each other's JSON.
func shape(t reflect.Type) string {
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Time]() {
		return t.String()
	}
	var b strings.Builder
	for f := range t.Fields() {
		fmt.Fprintf(&b, "%s %s %q;", f.Name, shape(f.Type), f.Tag)
	}
	return "{" + b.String() + "}"
}
