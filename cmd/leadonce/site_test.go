package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leadonce/leadonce/projections"
)

// site is one folder with a configuration and a log, and its own simulated CRM
// as a process.
type site struct {
	t      *testing.T
	dir    string
	env    []string // more of it, for what is started from then on
	crm    *program
	crmURL string
}

// siteConfig has all waits in proportion to how long the CRM hangs.
const siteConfig = `data_dir: data
bots: [{id: 700000001, secrets: ["${TELEGRAM_WEBHOOK_SECRET}"]}]
crm: {connector: crmsim, url: "%s", class: %s, settle: %s, trust_declared: true}
call_timeout: %s
lease: %s
retry: {attempts: 50, first: 50ms, max: 500ms}
clock_skew: 100ms
logging: {level: debug}
`

// brief is a CRM's hang that nothing has to be done in.
const brief = 400 * time.Millisecond

// newSite starts the CRM.
func newSite(t *testing.T, class string, hang time.Duration, crmFlags ...string) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir()}
	args := append([]string{"crmsim", "--listen", "127.0.0.1:0", "--class", class, "--journal", "crm.jsonl",
		"--hang", hang.String(), "--index-lag", "50ms", "--retry-after", "100ms"}, crmFlags...)
	s.crm = s.launch(args...)
	found, err := s.crm.await(`http://[0-9.:]+`)
	if err != nil {
		t.Fatal(err)
	}
	s.crmURL = found[0]
	s.write("leadonce.yaml", fmt.Sprintf(siteConfig, s.crmURL, class, 5*hang/2, 2*hang, 5*hang/2))
	return s
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

func (s *site) write(name, text string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(s.path(name)), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(s.path(name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// launch starts leadonce, and sees to its end.
func (s *site) launch(args ...string) *program {
	s.t.Helper()
	p, err := launch(s.dir, s.environment(), "leadonce", args...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(p.kill)
	return p
}

func (s *site) environment() []string {
	return append(own("TELEGRAM_WEBHOOK_SECRET="+secret), s.env...)
}

// suspend sends SIGSTOP, and returns when every thread stands still, where the
// system tells.
func (s *site) suspend(p *program) {
	s.t.Helper()
	p.signal(stopped)
	eventually(s.t, func() error {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
		for _, thread := range threads {
			stat, err := os.ReadFile(thread) // "1 (name) T …"
			if err == nil && !bytes.Contains(stat, []byte(") T ")) {
				return fmt.Errorf("a thread still runs: %s", stat)
			}
		}
		return nil
	})
}

// server is a running `leadonce serve`.
type server struct {
	*program
	url string
}

func (s *site) serve(flags ...string) server {
	s.t.Helper()
	p := s.launch(append([]string{"serve", "--listen", "127.0.0.1:0"}, flags...)...)
	found, err := p.await(`serving.*(http://[0-9.:]+)`)
	if err != nil {
		s.t.Fatal(err)
	}
	return server{p, found[1]}
}

// What a process can be sent beside the end itself.
const (
	term    = syscall.SIGTERM
	stopped = syscall.SIGSTOP
	resumed = syscall.SIGCONT
)

// await is the program's await, for what must come.
func (s *site) await(p *program, pattern string) {
	s.t.Helper()
	if _, err := p.await(pattern); err != nil {
		s.t.Fatal(err)
	}
}

// terminate sends SIGTERM, and demands the exit status 0.
func (s *site) terminate(p *program) {
	s.t.Helper()
	p.signal(term)
	s.ended(p)
}

// ended waits for the end, and demands the exit status 0.
func (s *site) ended(p *program) {
	s.t.Helper()
	if status, err := p.exit(); err != nil || status != 0 {
		text, _ := p.output()
		s.t.Fatalf("exit status %d (%v); output:\n%s", status, err, text)
	}
}

// run runs a command to its end.
func (s *site) run(args ...string) (status int, stdout, stderr string) {
	s.t.Helper()
	c := exec.Command("leadonce", args...)
	var out, failure bytes.Buffer
	c.Dir, c.Env, c.Stdout, c.Stderr = s.dir, s.environment(), &out, &failure
	if err := c.Run(); c.ProcessState == nil {
		s.t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), out.String(), failure.String()
}

// jobs are the jobs by update id.
func (s *site) jobs() map[int64]projections.Job {
	s.t.Helper()
	status, out, failure := s.run("job", "list", "--output", "json", "--limit", "10000")
	var list []projections.Job
	if err := json.Unmarshal([]byte(out), &list); status != 0 || err != nil {
		s.t.Fatalf("job list: status %d, %v: %s", status, err, failure)
	}
	jobs := map[int64]projections.Job{}
	for _, j := range list {
		jobs[j.UpdateID] = j
	}
	return jobs
}

// leads are the CRM's leads by the text that they carry.
func (s *site) leads() map[string]int {
	s.t.Helper()
	_, body, err := get(s.crmURL + "/oracle/effects")
	var effects []struct{ Fields map[string]string }
	if err == nil {
		err = json.Unmarshal([]byte(body), &effects)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	leads := map[string]int{}
	for _, e := range effects {
		leads[e.Fields["text"]]++
	}
	return leads
}

// script says what the CRM does with its next creates.
func (s *site) script(creates ...string) {
	s.t.Helper()
	body, _ := json.Marshal(map[string]any{"creates": creates})
	response, err := http.Post(s.crmURL+"/control/script", "application/json", bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusNoContent {
		s.t.Fatalf("script: %s", response.Status)
	}
}

// message is an update that asks for a lead with the text of its id.
func message(id int64) []byte {
	return fmt.Appendf(nil, `{"update_id":%d,"message":{"message_id":%d,"chat":{"id":5},"from":{"id":6},"text":"%s"}}`, id, id, textOf(id))
}

func textOf(id int64) string { return fmt.Sprintf("enquiry %d", id) }

// deliver posts a message, and demands an answer of 200.
func (s *site) deliver(v server, id int64) {
	s.t.Helper()
	if status, err := post(v.url, secret, message(id)); err != nil || status != http.StatusOK {
		s.t.Fatalf("update %d: status %d, %v", id, status, err)
	}
}

// account demands that each of the updates 1 to n is a job that is done, and has
// one lead.
func (s *site) account(n int64) {
	s.t.Helper()
	eventually(s.t, func() error {
		jobs := s.jobs()
		if len(jobs) != int(n) {
			return fmt.Errorf("%d jobs, want %d", len(jobs), n)
		}
		for id, j := range jobs {
			if j.Phase != "done" {
				return fmt.Errorf("update %d is %s: %s", id, j.Phase, j.LastError)
			}
		}
		return nil
	})
	leads := s.leads()
	for id := range n {
		if got := leads[textOf(id+1)]; got != 1 {
			s.t.Errorf("update %d has %d leads, want 1", id+1, got)
		}
	}
	if len(leads) != int(n) {
		s.t.Errorf("%d different leads, want %d", len(leads), n)
	}
	s.audited()
}

func (s *site) audited() {
	s.t.Helper()
	if status, out, failure := s.run("audit", "verify", "--crm"); status != 0 || !strings.Contains(out, "nothing is wrong") {
		s.t.Errorf("audit: status %d\n%s%s", status, out, failure)
	}
}
