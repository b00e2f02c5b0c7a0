package laws

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/audit"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/engine/job"
)

var update = flag.Bool("update", false, "write the golden logs that are missing; never change one")

const (
	goldenFolder = "testdata/golden"
	goldenSums   = goldenFolder + "/SHA256SUMS"
)

// line is one event of a golden log, <story>.log: a JSON object a line.
type line struct {
	Stream string    `json:"stream"`
	Time   time.Time `json:"time"`
	Type   string    `json:"type"`
	Data   string    `json:"data"` // byte for byte
}

func readLines(t *testing.T, path string) (lines []line) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for text := range bytes.Lines(text) {
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		lines = append(lines, l)
	}
	return lines
}

// statesOf folds each job's stream, and each reply's; the state of a reservation and
// of a bot is the newest event.
func statesOf(t *testing.T, lines []line) map[string]any {
	t.Helper()
	states := map[string]any{}
	for _, l := range lines {
		e, err := job.Decode(l.Type, []byte(l.Data))
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case strings.HasPrefix(l.Stream, job.OperationStreams), strings.HasPrefix(l.Stream, job.BotStreams):
			states[l.Stream] = e
			continue
		case strings.HasPrefix(l.Stream, job.ReplyStreams):
			r, _ := states[l.Stream].(job.Reply)
			if err := r.Allows(e); err != nil {
				t.Fatalf("%s: %v", l.Stream, err)
			}
			states[l.Stream] = r.Evolve(e, l.Time)
			continue
		}
		s, _ := states[l.Stream].(job.State)
		if err := job.Allowed(s.Now(), e); err != nil {
			t.Fatalf("%s: %v", l.Stream, err)
		}
		states[l.Stream] = s.Evolve(e, l.Time)
	}
	return states
}

// TestGoldenLogsFoldAsTheyDid: every member that a golden state has is the same
// now. A release may know more of a job than an earlier one did, and never less.
func TestGoldenLogsFoldAsTheyDid(t *testing.T) {
	if *update {
		writeMissing(t)
	}
	types, ends, states := map[string]int{}, map[string]int{}, 0
	for _, path := range goldenFiles(t, "*.log") {
		lines := readLines(t, path)
		for _, l := range lines {
			types[l.Type]++
			checkNamesOf(t, l)
		}
		folded := statesOf(t, lines)
		for stream, want := range readStates(t, strings.TrimSuffix(path, ".log")+".states") {
			states++
			var got map[string]any
			decodeExactly(t, encode(t, folded[stream]), &got)
			for _, problem := range lacks(got, want, stream) {
				t.Errorf("%s: %s", path, problem)
			}
			if s, ok := folded[stream].(job.State); ok {
				ends[fmt.Sprint(s.Phase, " ", s.How)]++
			}
			delete(folded, stream)
		}
		for stream := range folded {
			t.Errorf("%s has no state of %s", path, stream)
		}
	}
	if want := len(job.EventNames()) + 6; len(types) < want || states < 20 {
		t.Errorf("%d states were compared, of events of %d types, want %d: %v", states, len(types), want, types)
	}
	for _, end := range []string{
		"done create", "done upsert", "done exists", "done lookup", "done operator", "done late response", "done ", "dead_letter ",
		"pending ", "claimed ", "needs_reconciliation ",
	} {
		if ends[end] == 0 {
			t.Errorf("no golden log ends %s: %v", end, ends)
		}
	}
}

// checkNamesOf demands that an update which is delivered again is still known for
// a duplicate, and that an operation has the id under which the CRM knows it.
func checkNamesOf(t *testing.T, l line) {
	t.Helper()
	e, err := job.Decode(l.Type, []byte(l.Data))
	if err != nil {
		t.Fatal(err)
	}
	switch e := e.(type) {
	case job.UpdateReceived:
		u, err := job.ParseUpdate(e.Bot, []byte(e.Update))
		if again := job.Receive(u, e.Key); err != nil || again != e || e.Stream() != l.Stream {
			t.Errorf("%s was received as %+v, and now as %+v (%v)", l.Stream, e, again, err)
		}
	case job.JobClaimed:
		if id := job.OperationID(7_000_000_001, e.Action, e.BusinessKey); id != e.OperationID {
			t.Errorf("%s claimed the operation %s, which is now %s", l.Stream, e.OperationID, id)
		}
	}
}

// TestGoldenLogsAreOneSoundLog for the audit and the read models of this release.
func TestGoldenLogsAreOneSoundLog(t *testing.T) {
	log, events, phases := memory.New(), 0, map[job.Phase]int{}
	for _, path := range goldenFiles(t, "*.log") {
		lines := readLines(t, path)
		for _, l := range lines {
			events++
			var id eventlog.EventID
			binary.BigEndian.PutUint64(id[8:], uint64(events))
			if _, err := log.Append(t.Context(), l.Stream, eventlog.Any, eventlog.Proposed{ID: id, Type: l.Type, Time: l.Time, Data: []byte(l.Data)}); err != nil {
				t.Fatal(err)
			}
		}
		for _, state := range statesOf(t, lines) {
			if s, ok := state.(job.State); ok {
				phases[s.Phase]++
			}
		}
	}
	report, err := audit.Verify(t.Context(), log, nil)
	if err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(report.Phases, func(_ job.Phase, n int) bool { return n == 0 })
	if report.Events != events || events < 80 || !maps.Equal(report.Phases, phases) {
		t.Errorf("the audit read %d events of %d and counts %v, want %v", report.Events, events, report.Phases, phases)
	}
	models := openModels(t, filepath.Join(t.TempDir(), "models.db"))
	defer models.Close()
	counts := rebuilt(t, models, log).counts
	maps.DeleteFunc(counts.Phases, func(_ job.Phase, n int64) bool { return n == 0 })
	for phase, n := range phases {
		if counts.Phases[phase] != int64(n) || len(counts.Phases) != len(phases) || counts.Stopped != 0 {
			t.Errorf("the read models count %+v, want %v", counts, phases)
		}
	}
	incidents := 0
	for _, f := range report.Findings {
		if incidents++; f.Kind != audit.Incident {
			t.Errorf("%+v", f)
		}
	}
	if incidents < 2 { // two stories have receipts in conflict
		t.Errorf("the audit finds %d incidents", incidents)
	}
}

// lacks says which members of want are missing in got or are others there.
func lacks(got, want map[string]any, where string) (problems []string) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		inner, isObject := want[name].(map[string]any)
		gotInner, gotObject := got[name].(map[string]any)
		switch at := where + "." + name; {
		case isObject && gotObject:
			problems = append(problems, lacks(gotInner, inner, at)...)
		case fmt.Sprintf("%#v", got[name]) != fmt.Sprintf("%#v", want[name]):
			problems = append(problems, fmt.Sprintf("%s is %#v, and was %#v", at, got[name], want[name]))
		}
	}
	return problems
}

// TestGoldenLogsOnlyGrow: what was written once stays as it is.
func TestGoldenLogsOnlyGrow(t *testing.T) {
	sums, files := map[string]string{}, 0
	text, err := os.ReadFile(goldenSums)
	if err != nil {
		t.Fatal(err)
	}
	for entry := range strings.Lines(string(text)) {
		sum, name, ok := strings.Cut(strings.TrimSpace(entry), "  ")
		if _, twice := sums[name]; !ok || twice {
			t.Fatalf("%s: %q is broken or stands twice", goldenSums, entry)
		}
		sums[name] = sum
	}
	for _, path := range append(goldenFiles(t, "*.log"), goldenFiles(t, "*.states")...) {
		files++
		name := filepath.Base(path)
		if sum := sumOf(t, path); sums[name] != sum {
			t.Errorf("%s has the sum %s, and had %q", path, sum, sums[name])
		}
		delete(sums, name)
	}
	for name := range sums {
		t.Errorf("%s is gone", name)
	}
	for _, s := range stories() {
		if _, err := os.Stat(filepath.Join(goldenFolder, s.name+".log")); err != nil {
			t.Errorf("%v: run TestGoldenLogsFoldAsTheyDid with -update", err)
		}
	}
	if files < 30 {
		t.Errorf("only %d files were compared", files)
	}
}

func goldenFiles(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(goldenFolder, pattern))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func sumOf(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func readStates(t *testing.T, path string) (states map[string]map[string]any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	decodeExactly(t, data, &states)
	return states
}

// decodeExactly keeps numbers of 64 bits.
func decodeExactly(t *testing.T, data []byte, to any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(to); err != nil {
		t.Fatal(err)
	}
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// writeMissing writes the stories that have no file.
func writeMissing(t *testing.T) {
	t.Helper()
	if err := os.MkdirAll(goldenFolder, 0o755); err != nil {
		t.Fatal(err)
	}
	sums, err := os.OpenFile(goldenSums, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer sums.Close()
	for _, s := range stories() {
		path := filepath.Join(goldenFolder, s.name)
		if _, err := os.Stat(path + ".log"); err == nil {
			continue
		}
		var text []byte
		var lines []line
		for _, e := range s.entries {
			name, data, err := job.Encode(e.event)
			if err != nil {
				t.Fatal(err)
			}
			l := line{e.stream, e.at, name, string(data)}
			written, err := json.Marshal(l)
			if err != nil {
				t.Fatal(err)
			}
			lines, text = append(lines, l), append(append(text, written...), '\n')
		}
		for ending, data := range map[string][]byte{".log": text, ".states": append(encode(t, statesOf(t, lines)), '\n')} {
			if err := os.WriteFile(path+ending, data, 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := fmt.Fprintf(sums, "%s  %s\n", sumOf(t, path+ending), s.name+ending); err != nil {
				t.Fatal(err)
			}
		}
	}
}
