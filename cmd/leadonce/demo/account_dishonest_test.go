package demo

import (
	"fmt"
	"strings"
	"testing"
)

// Two messages of one bot, an album of two, a poll, and an id that comes twice.
var day = []update{
	{bot: 1, id: 1, kind: "message", enquiry: "enquiry-000001"},
	{bot: 1, id: 2, kind: "message", enquiry: "enquiry-000002"},
	{bot: 1, id: 3, kind: "message", enquiry: "enquiry-000003"},
	{bot: 1, id: 4, kind: "message", enquiry: "enquiry-000003"},
	{bot: 1, id: 5, kind: "poll"},
	{bot: 1, id: 1, kind: "message", enquiry: "enquiry-000004"},
}

// good are the jobs and leads of a day on which nothing went wrong.
func good() (jobs map[place][]string, leads map[string]int) {
	jobs = map[place][]string{
		{1, 1}: {"done", "done"}, {1, 2}: {"done"}, {1, 3}: {"done"}, {1, 4}: {"done"}, {1, 5}: {"done"},
	}
	leads = map[string]int{"enquiry-000001": 1, "enquiry-000002": 1, "enquiry-000003": 1, "enquiry-000004": 1}
	return jobs, leads
}

// A judge that cannot convict proves nothing.
func TestJudgeSeesWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		spoil         func(jobs map[place][]string, leads map[string]int)
		lost, doubled int
	}{
		"nothing":                 {func(map[place][]string, map[string]int) {}, 0, 0},
		"a lead lost":             {func(_ map[place][]string, l map[string]int) { delete(l, "enquiry-000002") }, 1, 0},
		"a lead doubled":          {func(_ map[place][]string, l map[string]int) { l["enquiry-000002"] = 2 }, 0, 1},
		"an album's lead doubled": {func(_ map[place][]string, l map[string]int) { l["enquiry-000003"] = 2 }, 0, 1},
		"an album's lead lost":    {func(_ map[place][]string, l map[string]int) { delete(l, "enquiry-000003") }, 1, 0},
		"a job lost":              {func(j map[place][]string, _ map[string]int) { delete(j, place{1, 5}) }, 1, 0},
		"a job and its lead lost": {func(j map[place][]string, l map[string]int) {
			delete(j, place{1, 2})
			delete(l, "enquiry-000002")
		}, 2, 0},
		"one of two with one id lost": {func(j map[place][]string, _ map[string]int) { j[place{1, 1}] = []string{"done"} }, 1, 0},
		"one of two with one id lost, the other waits": {func(j map[place][]string, l map[string]int) {
			j[place{1, 1}] = []string{needsReconciliation}
			delete(l, "enquiry-000001")
			delete(l, "enquiry-000004")
		}, 1, 0},
		"a lead that nobody asked for": {func(_ map[place][]string, l map[string]int) { l[""] = 1 }, 0, 1},
		"a lead of another day":        {func(_ map[place][]string, l map[string]int) { l["enquiry-000099"] = 1 }, 0, 1},
		"done without a lead":          {func(_ map[place][]string, l map[string]int) { l["enquiry-000001"] = 0 }, 1, 0},
		"a lead that waits for a human": {func(j map[place][]string, l map[string]int) {
			j[place{1, 2}] = []string{needsReconciliation}
			delete(l, "enquiry-000002")
		}, 0, 0},
		"a lead to be looked up": {func(j map[place][]string, l map[string]int) {
			j[place{1, 2}] = []string{toBeLookedUp}
			delete(l, "enquiry-000002")
		}, 1, 0},
		"doubled, and waits": {func(j map[place][]string, l map[string]int) {
			j[place{1, 2}] = []string{needsReconciliation}
			l["enquiry-000002"] = 2
		}, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			jobs, leads := good()
			c.spoil(jobs, leads)
			var a account
			a.judge(day, leads, jobs)
			if a.lost != c.lost || a.doubled != c.doubled {
				t.Errorf("%d lost and %d doubled, want %d and %d", a.lost, a.doubled, c.lost, c.doubled)
			}
			if a.enquiries != 4 {
				t.Errorf("%d enquiries, want 4", a.enquiries)
			}
		})
	}
}

// The CRM's own list, with one lead doubled in it, counts as doubled.
func TestCountSeesDoubledLeads(t *testing.T) {
	list := `[
		{"external_id":"a","crm_id":"L-1","fields":{"text":"please call me back, enquiry-000001","source":"telegram"}},
		{"external_id":"a","crm_id":"L-2","fields":{"text":"please call me back, enquiry-000001","source":"telegram"}},
		{"external_id":"b","crm_id":"L-3","fields":{"contact_name":"enquiry-000002"}},
		{"external_id":"c","crm_id":"L-4","fields":{"file_id":"enquiry-000003","attachment":"voice"}},
		{"external_id":"d","crm_id":"L-5","fields":{"text":"a sticker"}},
		{"external_id":"e","crm_id":"L-6","fields":null}]`
	got, err := count([]byte(list))
	want := map[string]int{"enquiry-000001": 2, "enquiry-000002": 1, "enquiry-000003": 1, "": 2}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("count is %v, %v; want %v", got, err, want)
	}
	for _, broken := range []string{"", "{}", "[1]", `[{"fields":[]}]`, list[:len(list)-1]} {
		if got, err := count([]byte(broken)); err == nil {
			t.Errorf("%q counts as %v", broken, got)
		}
	}
}

// Each thing that can be wrong is enough to be wrong.
func TestCleanIsOnlyWhatIsRight(t *testing.T) {
	right := account{sent: 3, accepted: 3, reconcile: 1, dead: 1, kills: 2, duplicates: 1}
	if !right.clean() {
		t.Error("an account without a fault is not clean")
	}
	for name, spoil := range map[string]func(*account){
		"not accepted": func(a *account) { a.accepted-- },
		"lost":         func(a *account) { a.lost++ },
		"doubled":      func(a *account) { a.doubled++ },
		"open":         func(a *account) { a.open++ },
		"finding":      func(a *account) { a.findings = []string{"LOST x"} },
	} {
		a := right
		if spoil(&a); a.clean() {
			t.Errorf("%s: still clean", name)
		}
	}
}

// Who waits for a person is not busy, and neither are the rest of its album.
func TestBusyIsWhoGoesOnAlone(t *testing.T) {
	for phase, want := range map[string]int{
		"pending": 1, "claimed": 1, toBeLookedUp: 1, "done": 0, "dead_letter": 0, needsReconciliation: 0,
	} {
		jobs, _ := good()
		jobs[place{1, 2}] = []string{phase}
		if got := busy(day, jobs); got != want {
			t.Errorf("a job in %s: %d busy, want %d", phase, got, want)
		}
	}
	jobs, _ := good()
	jobs[place{1, 3}], jobs[place{1, 4}] = []string{needsReconciliation}, []string{"pending"}
	if got := busy(day, jobs); got != 0 {
		t.Errorf("the rest of an album whose first waits for a person: %d busy, want 0", got)
	}
}

func TestWriteAccountsShowsFindings(t *testing.T) {
	var b strings.Builder
	writeAccounts(&b, []account{{class: "lookup", sent: 7, lost: 3, findings: []string{"LOST telegram/1/1: gone", "DOUBLED x: y"}}, {class: "none", sent: 5, doubled: 4}})
	for _, want := range []string{"lookup", "LOST telegram/1/1: gone\n  DOUBLED x: y", "audit verify, none: nothing is wrong"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	for _, line := range strings.Split(b.String(), "\n") {
		if f := strings.Fields(line); len(f) > 0 && f[0] == "total" && (f[1] != "12" || f[len(f)-2] != "3" || f[len(f)-1] != "4") {
			t.Errorf("the total is %s", line)
		}
	}
}
