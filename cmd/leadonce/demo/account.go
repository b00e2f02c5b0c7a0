package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
)

// account is what became of the updates of one rig. Leads, lost and doubled
// come from the CRM's journal, phases and findings from `audit verify`.
type account struct {
	class                      string
	sent, accepted, duplicates int
	enquiries                  int // distinct things that ask for a lead
	leads, reconcile, dead     int
	open                       int // jobs that are not final
	kills, lost, doubled       int
	findings                   []string
}

func (a account) clean() bool {
	return a.accepted == a.sent && a.lost == 0 && a.doubled == 0 && a.open == 0 && len(a.findings) == 0
}

var mark = regexp.MustCompile(`enquiry-\d{6}`)

// settle makes up the account of a rig whose work is over.
func settle(ctx context.Context, r *rig, t *telegram, list []update) (account, error) {
	a := account{
		class: r.class, sent: len(list), accepted: int(t.acknowledged.Load()),
		duplicates: int(t.again.Load()), kills: int(r.kills.Load()),
	}
	body, err := fetch(ctx, r.crmURL+"/oracle/effects")
	if err != nil {
		return a, err
	}
	leads, err := count(body)
	if err != nil {
		return a, err
	}
	report, err := r.audit(ctx)
	if err != nil {
		return a, err
	}
	for _, f := range report.Findings {
		a.findings = append(a.findings, strings.ToUpper(f.Kind)+" "+f.Subject+": "+f.Detail)
	}
	jobs, err := r.jobs(ctx)
	if err != nil {
		return a, err
	}
	a.reconcile, a.dead = report.Phases[needsReconciliation], report.Phases["dead_letter"]
	a.open = busy(list, jobs)
	a.judge(list, leads, jobs)
	return a, nil
}

// count tells from the CRM's list how many leads each enquiry has. Those that
// bear no enquiry's mark are counted under "".
func count(list []byte) (map[string]int, error) {
	var effects []struct {
		Fields map[string]string `json:"fields"`
	}
	if err := json.Unmarshal(list, &effects); err != nil {
		return nil, fmt.Errorf("the CRM's journal: %w", err)
	}
	leads := map[string]int{}
	for _, e := range effects {
		found := ""
		for _, value := range e.Fields {
			if m := mark.FindString(value); m != "" {
				found = m
			}
		}
		leads[found]++
	}
	return leads, nil
}

// place is where Telegram sees an update: two that share one are two jobs.
type place struct{ bot, id int64 }

// busy is how many jobs still have something to do by themselves. A member of an
// album waits for the one that was first, and that one may wait for a person.
func busy(list []update, jobs map[place][]string) int {
	human := waiting(list, jobs)
	n := 0
	for _, u := range list {
		for _, phase := range jobs[place{u.bot, u.id}] {
			switch phase {
			case "pending", "claimed", toBeLookedUp:
				if !human[u.enquiry] {
					n++
				}
			}
		}
	}
	return n
}

// waiting are the enquiries that a person has to decide about.
func waiting(list []update, jobs map[place][]string) map[string]bool {
	set := map[string]bool{}
	for _, u := range list {
		phases := jobs[place{u.bot, u.id}]
		if u.enquiry != "" && (slices.Contains(phases, needsReconciliation) || slices.Contains(phases, "dead_letter")) {
			set[u.enquiry] = true
		}
	}
	return set
}

// judge counts what was lost or doubled. An update is lost that was acknowledged
// and is no job; an enquiry is lost that has no lead, and no job that waits in
// the open for one. A lead that no enquiry asked for is one too many as well.
func (a *account) judge(list []update, leads map[string]int, jobs map[place][]string) {
	waits := waiting(list, jobs)
	wanted := map[place]int{}
	for _, u := range list {
		wanted[place{u.bot, u.id}]++
	}
	for at, n := range wanted {
		a.lost += max(0, n-len(jobs[at]))
	}
	asked := enquiries(list)
	for e, n := range leads {
		a.leads += n
		if !asked[e] {
			a.doubled += n
		}
	}
	for e := range asked {
		a.enquiries++
		if leads[e] == 0 && !waits[e] {
			a.lost++
		}
		if leads[e] > 1 {
			a.doubled++
		}
	}
}

func enquiries(list []update) map[string]bool {
	set := map[string]bool{}
	for _, u := range list {
		if u.enquiry != "" {
			set[u.enquiry] = true
		}
	}
	return set
}

func writeAccounts(w io.Writer, accounts []account) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "CRM class\tsent\taccepted\trepeated\tenquiries\tleads\treconcile\tdead letter\tSIGKILLs\tlost\tdoubled\t")
	var total account
	for _, a := range accounts {
		writeRow(t, a.class, a)
		total = total.plus(a)
	}
	if len(accounts) > 1 {
		writeRow(t, "total", total)
	}
	_ = t.Flush() // standard output is what it is
	for _, a := range accounts {
		verdict := "nothing is wrong"
		if len(a.findings) > 0 {
			verdict = strings.Join(a.findings, "\n  ")
		}
		fmt.Fprintf(w, "audit verify, %s: %s\n", a.class, verdict)
	}
}

func writeRow(w io.Writer, name string, a account) {
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", name,
		a.sent, a.accepted, a.duplicates, a.enquiries, a.leads, a.reconcile, a.dead, a.kills, a.lost, a.doubled)
}

func (a account) plus(b account) account {
	return account{
		sent: a.sent + b.sent, accepted: a.accepted + b.accepted, duplicates: a.duplicates + b.duplicates,
		enquiries: a.enquiries + b.enquiries, leads: a.leads + b.leads, reconcile: a.reconcile + b.reconcile,
		dead: a.dead + b.dead, kills: a.kills + b.kills, lost: a.lost + b.lost, doubled: a.doubled + b.doubled,
	}
}
