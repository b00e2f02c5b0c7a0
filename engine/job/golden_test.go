package job

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files that are missing; never change one")

const (
	goldenFolder = "testdata/golden"
	goldenSums   = goldenFolder + "/SHA256SUMS"
)

// goldens are the events whose encoding under the current wire names is kept as
// a golden file: <wire name>.json and <wire name>.<variant>.json. A row that is
// no longer current keeps its files; nothing here makes them any more.
func goldens() map[string]Event {
	at, later := epoch, epoch.AddDate(0, 0, 1).Truncate(0)
	return map[string]Event{
		"UpdateReceived.v1": UpdateReceived{
			Key:         Key{Bot: 7000000001, Update: 727334708, Variant: "0123456789abcdef"},
			Fingerprint: strings.Repeat("0123456789abcdef", 4), Kind: "message",
			Chat: -1002000000001, User: 7000000002,
			Update: "{\"update_id\": 727334708,\r\n\"message\":{\"text\":\"<\\u00e9 & \u2028 \\\"é\\ud83d\\ude00\"}}\n",
		},
		"UpdateReceived.v1.minimal":     UpdateReceived{Key: Key{Bot: -1, Update: -2}, Fingerprint: "f", Kind: NoKind, Update: `{"update_id":-2}`},
		"DeliveryRepeated.v1":           DeliveryRepeated{Reason: "same event key and fingerprint"},
		"KeyConflicted.v1":              KeyConflicted{Fingerprint: "f", StoredAs: "telegram/1/2/0123456789abcdef"},
		"JobClaimed.v1":                 JobClaimed{Worker: "w-1", Attempt: 2, Action: CreateLead, BusinessKey: "telegram/1/2", OperationID: OperationID(1, CreateLead, "telegram/1/2"), LeaseUntil: later, Deadline: at},
		"ClaimRenewed.v1":               ClaimRenewed{LeaseUntil: later, Deadline: at},
		"ClaimReleased.v1":              ClaimReleased{Reason: "dial refused", NotBefore: at},
		"AttemptNotApplied.v1":          AttemptNotApplied{Reason: "429", NotBefore: at},
		"OutcomeUnknown.v1":             OutcomeUnknown{Reason: "time-out <a&b>", NotBefore: at},
		"ReconciliationNeeded.v1":       ReconciliationNeeded{Reason: "time-out", NotBefore: at},
		"ReconciliationNeeded.v1.human": ReconciliationNeeded{Reason: "2 leads", Human: true},
		"StepConfirmed.v1":              StepConfirmed{Step: "contact", CRMID: "C-7", How: ByOperator, By: "ann", Reason: "seen in the CRM"},
		"LeadConfirmed.v1":              LeadConfirmed{CRMID: "4711", How: ByOperator, By: "ann", Reason: "seen"},
		"LeadConfirmed.v1.minimal":      LeadConfirmed{CRMID: "4711", How: ByLate},
		"ReceiptConflicted.v1":          ReceiptConflicted{CRMID: "4712", Confirmed: "4711"},
		"ReceiptConflicted.v1.minimal":  ReceiptConflicted{CRMID: "4712"},
		"NoEffectNeeded.v1":             NoEffectNeeded{Reason: "confirmed by another job", ConfirmedBy: "telegram/1/3", CRMID: "4711"},
		"NoEffectNeeded.v1.minimal":     NoEffectNeeded{Reason: "no rule"},
		"LeadAbsent.v1":                 LeadAbsent{How: ByOperator, By: "ann", Reason: "looked"},
		"LeadAbsent.v1.minimal":         LeadAbsent{How: ByLookup},
		"JobDeadLettered.v1":            JobDeadLettered{Reason: "discarded: spam", By: "ann"},
		"JobDeadLettered.v1.minimal":    JobDeadLettered{Reason: "refused: no e-mail"},
		"JobRequeued.v1":                JobRequeued{By: "ann", Reason: "mended"},
		"ChatMigrated.v1":               ChatMigrated{Bot: 1, From: -5, To: -1001},
		"SeriesJoined.v1":               SeriesJoined{Job: Key{Bot: 1, Update: 3}, Opened: Key{Bot: 1, Update: 2}, SentAt: at},
		"OperationReserved.v1":          OperationReserved{Holder: Key{Bot: 1, Update: 2, Variant: "0123456789abcdef"}, Requeues: 1},
		"OperationReserved.v1.minimal":  OperationReserved{Holder: Key{Bot: 1, Update: 2}},
		"ReplyClaimed.v1":               ReplyClaimed{Key: Key{Bot: 1, Update: 2, Variant: "0123456789abcdef"}, Worker: "w-1", Outcome: LeadMade, Until: later},
		"ReplyClaimed.v1.minimal":       ReplyClaimed{Key: Key{Bot: 1, Update: 2}, Worker: "w-1", Outcome: MadeElsewhere, Until: later},
		"ReplySent.v1":                  ReplySent{MessageID: 4711},
		"ReplyRefused.v1":               ReplyRefused{Reason: "403 Forbidden: bot was blocked by the user"},
		"ReplyUnknown.v1":               ReplyUnknown{Reason: "time-out"},
		"PendingUpdatesDropped.v1":      PendingUpdatesDropped{Bot: 1, Count: 5, By: "ann", Reason: "spam"},
	}
}

// wireOf is the wire name of a golden file's name without its ending.
func wireOf(golden string) string {
	parts := strings.Split(golden, ".")
	return strings.Join(parts[:2], ".")
}

func TestGoldenFilesOnlyGrow(t *testing.T) {
	if *update {
		writeMissingGoldens(t)
	}
	listed := readSums(t)
	files, err := filepath.Glob(goldenFolder + "/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		name := filepath.Base(path)
		if sum := sumOf(t, path); listed[name] != sum {
			t.Errorf("%s has the sum %s, SHA256SUMS says %q: a golden file never changes", name, sum, listed[name])
		}
		delete(listed, name)
	}
	for name := range listed {
		t.Errorf("%s is in SHA256SUMS and is gone: a golden file is never removed", name)
	}
}

func TestEveryWireRowHasAGoldenFileAndEveryGoldenFileARow(t *testing.T) {
	covered := map[string]bool{}
	for name := range readSums(t) {
		wire := wireOf(strings.TrimSuffix(name, ".json"))
		covered[wire] = true
		if _, ok := wireByName[wire]; !ok {
			t.Errorf("%s has no row: events in somebody's log can no longer be read", name)
		}
	}
	for _, w := range wires {
		if !covered[w.name] {
			t.Errorf("%s has no golden file: add it to goldens and run this test with -update", w.name)
		}
	}
	for name := range goldens() {
		if _, err := os.Stat(filepath.Join(goldenFolder, name+".json")); err != nil {
			t.Errorf("%v: run this test with -update", err)
		}
	}
}

// TestLogsOfEarlierReleasesAreStillRead decodes every golden file.
func TestLogsOfEarlierReleasesAreStillRead(t *testing.T) {
	made := goldens()
	for name := range readSums(t) {
		golden := strings.TrimSuffix(name, ".json")
		data, err := os.ReadFile(filepath.Join(goldenFolder, name))
		if err != nil {
			t.Fatal(err)
		}
		e, err := Decode(wireOf(golden), data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !wireByName[wireOf(golden)].current {
			continue
		}
		wire, again, err := Encode(e)
		if err != nil || wire != wireOf(golden) || !bytes.Equal(again, data) {
			t.Errorf("%s decodes and encodes to %s\n%s\nwant\n%s (%v)", name, wire, again, data, err)
		}
		if want, ok := made[golden]; ok {
			if _, b, _ := Encode(want); !bytes.Equal(b, data) {
				t.Errorf("%s is no longer what the event encodes to:\n%s", name, b)
			}
		}
	}
}

func writeMissingGoldens(t *testing.T) {
	t.Helper()
	made := goldens()
	var sums []string
	for name := range made {
		path := filepath.Join(goldenFolder, name+".json")
		if _, err := os.Stat(path); err == nil {
			continue
		}
		wire, data, err := Encode(made[name])
		if err != nil || wire != wireOf(name) {
			t.Fatalf("%s encodes under %s: %v", name, wire, err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		sums = append(sums, sumOf(t, path)+"  "+name+".json\n")
	}
	slices.SortFunc(sums, func(a, b string) int { return strings.Compare(a[64:], b[64:]) })
	file, err := os.OpenFile(goldenSums, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(strings.Join(sums, "")); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

func readSums(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile(goldenSums)
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(data)) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if _, twice := sums[name]; !ok || twice {
			t.Fatalf("SHA256SUMS: line %q is broken or stands twice", line)
		}
		sums[name] = sum
	}
	return sums
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
