package demo

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// rig is one CRM and one engine, each a process of its own.
type rig struct {
	class, dir, exe, secret string
	seed                    uint64
	faults                  float64

	crmURL string
	crm    *exec.Cmd
	kills  atomic.Int64

	mu      sync.Mutex // guards the members' processes
	members []*member
}

// member is a process of the engine, and those that follow it at its address.
type member struct {
	role, url string
	process   *exec.Cmd
}

// The rig's CRM hangs for a second where a real one hangs for twenty, and all
// waits are in proportion. settle leaves 2.5 s for a busy machine.
const configuration = `data_dir: %s
kurrentdb: {namespace: %s}
bots:
  - {id: 700000001, secrets: ["${DEMO_SECRET}"]}
  - {id: 700000002, secrets: ["${DEMO_SECRET}"]}
  - {id: 700000003, secrets: ["${DEMO_SECRET}"]}
crm: {connector: crmsim, url: "%s", class: %s, settle: 4s, trust_declared: true}
workers: 8
lease: 1500ms
call_timeout: 700ms
retry: {attempts: 12, first: 100ms, max: 2s}
clock_skew: 100ms
`

func (r *rig) config() string { return filepath.Join(r.dir, "leadonce.yaml") }

// start starts the CRM and then the engine.
func (r *rig) start(ctx context.Context, processes int) error {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return err
	}
	crmAddress, err := freeAddress()
	if err != nil {
		return err
	}
	r.crmURL = "http://" + crmAddress
	text := fmt.Sprintf(configuration, filepath.Join(r.dir, "data"), r.class, r.crmURL, r.class)
	if err := os.WriteFile(r.config(), []byte(text), 0o600); err != nil {
		return err
	}
	r.crm, err = r.spawn("crmsim.log", "crmsim", "--listen", crmAddress, "--class", r.class,
		"--faults", strconv.FormatFloat(r.faults, 'g', -1, 64), "--seed", strconv.FormatUint(r.seed, 10),
		"--hang", "1s", "--index-lag", "300ms", "--retry-after", "200ms", "--journal", filepath.Join(r.dir, "crm.jsonl"))
	if err != nil {
		return err
	}
	if err := r.join(processes); err != nil {
		return err
	}
	ready := await(ctx, r.crmURL+"/oracle/stats")
	for _, m := range r.members {
		ready = errors.Join(ready, await(ctx, m.url+"/readyz"))
	}
	return ready
}

// join starts the engine: one process, or that many of each role.
func (r *rig) join(processes int) error {
	roles := []string{"all"}
	if processes > 1 {
		roles = slices.Concat(slices.Repeat([]string{"ingress"}, processes), slices.Repeat([]string{"worker"}, processes))
	}
	for _, role := range roles {
		address, err := freeAddress()
		if err != nil {
			return err
		}
		m := &member{role: role, url: "http://" + address}
		r.members = append(r.members, m)
		if err := r.begin(m); err != nil {
			return err
		}
	}
	return nil
}

// intakes are the addresses to deliver to.
func (r *rig) intakes() (urls []string) {
	for _, m := range r.members {
		if m.role != "worker" {
			urls = append(urls, m.url)
		}
	}
	return urls
}

// freeAddress is an address on the loopback interface that was free just now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// spawn starts a subcommand of this program; its output goes to a file.
func (r *rig) spawn(logName string, args ...string) (*exec.Cmd, error) {
	log, err := os.OpenFile(filepath.Join(r.dir, logName), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own
	c := exec.Command(r.exe, args...)
	c.Env = append(os.Environ(), "DEMO_SECRET="+r.secret)
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		return nil, err
	}
	return c, nil
}

func (r *rig) begin(m *member) error {
	c, err := r.spawn("serve.log", "serve", "--config", r.config(), "--role", m.role, "--listen", strings.TrimPrefix(m.url, "http://"))
	if err == nil {
		m.process = c
	}
	return err
}

// await asks the address until it answers 200.
func await(ctx context.Context, url string) error {
	for {
		status := "no answer"
		if response, err := http.Get(url); err == nil {
			response.Body.Close()
			if status = response.Status; response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s: %s", url, status)
		}
	}
}

// kill ends a member as a power cut would, and starts it again.
func (r *rig) kill(n int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.members[n%len(r.members)]
	if err := m.process.Process.Kill(); err != nil {
		return fmt.Errorf("kill the engine: %w", err)
	}
	_ = m.process.Wait() // it was killed: that is its answer
	r.kills.Add(1)
	return r.begin(m)
}

// stop ends all processes, the engine's first, and reports one of those that does
// not stop cleanly.
func (r *rig) stop() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	for _, m := range r.members {
		if m.process == nil {
			continue
		}
		_ = m.process.Process.Signal(syscall.SIGTERM) // one that is gone says so in Wait
		if failure := m.process.Wait(); failure != nil {
			err = fmt.Errorf("the engine stopped with %w; see %s", failure, filepath.Join(r.dir, "serve.log"))
		}
		m.process = nil
	}
	if r.crm != nil {
		_ = r.crm.Process.Signal(syscall.SIGTERM)
		_ = r.crm.Wait()
		r.crm = nil
	}
	return err
}

// open is how many jobs the engine still works on, by the metrics of its last member.
func (r *rig) open(ctx context.Context) (int, error) {
	body, err := fetch(ctx, r.members[len(r.members)-1].url+"/metrics")
	if err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(bytes.NewReader(body))
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), `leadonce_jobs{state="open"} `); ok {
			return strconv.Atoi(value)
		}
	}
	return 0, errors.New("the engine's metrics do not tell the open jobs")
}

func fetch(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, response.Status)
	}
	return io.ReadAll(response.Body)
}

// auditReport is what `audit verify --output json` prints.
type auditReport struct {
	Jobs     int            `json:"jobs"`
	Phases   map[string]int `json:"phases"`
	Findings []struct {
		Kind    string `json:"kind"`
		Subject string `json:"subject"`
		Detail  string `json:"detail"`
	} `json:"findings"`
}

// audit runs `audit verify` against the CRM's list.
func (r *rig) audit(ctx context.Context) (report auditReport, err error) {
	return report, r.ask(ctx, &report, "audit", "verify", "--crm")
}

// The phase of a job that waits for a person, and what jobs calls it while it
// only waits for the time to look its lead up.
const (
	needsReconciliation = "needs_reconciliation"
	toBeLookedUp        = "to be looked up"
)

// jobs runs `job list` and returns the phases of the jobs by where Telegram saw
// the update.
func (r *rig) jobs(ctx context.Context) (map[place][]string, error) {
	var list []struct {
		Bot      int64  `json:"bot"`
		UpdateID int64  `json:"update_id"`
		Phase    string `json:"phase"`
		Human    bool   `json:"human"`
	}
	if err := r.ask(ctx, &list, "job", "list", "--limit", "10000000"); err != nil {
		return nil, err
	}
	phases := map[place][]string{}
	for _, j := range list {
		at := place{j.Bot, j.UpdateID}
		if j.Phase == needsReconciliation && !j.Human {
			j.Phase = toBeLookedUp
		}
		phases[at] = append(phases[at], j.Phase)
	}
	return phases, nil
}

// ask runs a subcommand and reads the JSON that it prints. An exit status of 1
// with an answer is an answer: it has findings.
func (r *rig) ask(ctx context.Context, answer any, args ...string) error {
	var failure bytes.Buffer
	c := exec.CommandContext(ctx, r.exe, append(args, "--config", r.config(), "--output", "json")...)
	c.Env = append(os.Environ(), "DEMO_SECRET="+r.secret)
	c.Stderr = &failure
	out, err := c.Output()
	if len(out) == 0 {
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, failure.String())
	}
	return json.Unmarshal(out, answer)
}
