package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/crmsim"
)

const (
	benchBot    = 700000001
	benchSecret = "a-secret_of-the-benchmark"
	benchClass  = crmsim.IdempotencyKey
)

// benchNumber is the number in an environment variable, or the standard one.
func benchNumber(b *testing.B, name string, standard int) int {
	text, set := os.LookupEnv(name)
	if !set {
		return standard
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		b.Fatalf("%s is %q: give a whole number from 1", name, text)
	}
	return n
}

// simulatedCRM serves a CRM without faults on loopback until stop.
func simulatedCRM(b *testing.B) (crm *crmsim.Server, url string) {
	b.Helper()
	crm, err := crmsim.New(crmsim.Config{Class: benchClass})
	if err != nil {
		b.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(b.Context()))
	ended := make(chan error, 1)
	go func() { ended <- crm.Serve(ctx, listener) }()
	b.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, crm.Close()); err != nil {
			b.Error(err)
		}
	})
	return crm, "http://" + listener.Addr().String()
}

// bench is one data folder, and the program that serves it as a process.
type bench struct {
	*testing.B
	exe, dir string
	running  *program
	addr     string
}

// newBench builds the program as users do.
func newBench(b *testing.B, crmURL string) *bench {
	b.Helper()
	v := &bench{B: b, dir: b.TempDir()}
	v.exe = filepath.Join(v.dir, "leadonce")
	if out, err := exec.Command("go", "build", "-o", v.exe, ".").CombinedOutput(); err != nil {
		b.Fatalf("go build: %v\n%s", err, out)
	}
	text := fmt.Sprintf("bots: [{id: %d, secrets: [%s]}]\ncrm: {connector: crmsim, url: %q, class: %s, trust_declared: true}\n",
		benchBot, benchSecret, crmURL, benchClass)
	if err := os.WriteFile(filepath.Join(v.dir, "leadonce.yaml"), []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if v.running != nil {
			v.running.kill()
		}
	})
	return v
}

func (v *bench) data() string { return filepath.Join(v.dir, "data") }

// file is one of the data folder.
func (v *bench) file(name string) string { return filepath.Join(v.data(), name) }

// start starts it and returns how long it took until /readyz was 200.
func (v *bench) start(within time.Duration) time.Duration {
	v.Helper()
	began := time.Now()
	p, err := launch(v.dir, own(), v.exe, "serve", "--listen", "127.0.0.1:0")
	if err != nil {
		v.Fatal(err)
	}
	v.running = p
	found, err := p.await(`serving.*http://([0-9.:]+)`)
	if err != nil {
		v.Fatal(err)
	}
	v.addr = found[1]
	for until := began.Add(within); !v.ready(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(until) || p.gone() == nil {
			text, _ := p.output()
			v.Fatalf("not ready within %v; its output:\n%s", within, text)
		}
	}
	return time.Since(began)
}

func (v *bench) ready() bool {
	status, _, err := get("http://" + v.addr + "/readyz")
	return err == nil && status == http.StatusOK
}

// kill ends it as a power cut would.
func (v *bench) kill() {
	v.running.kill()
	v.running = nil
}

// stop ends it with SIGTERM.
func (v *bench) stop() {
	v.Helper()
	v.running.signal(term)
	if status, err := v.running.exit(); err != nil || status != 0 {
		text, _ := v.running.output()
		v.Errorf("exit status %d (%v); output:\n%s", status, err, text)
	}
	v.running = nil
}

var openJobs = regexp.MustCompile(`leadonce_jobs\{state="open"\} (\d+)`)

// open is how many jobs it knows that are not final.
func (v *bench) open() int {
	v.Helper()
	_, body, err := get("http://" + v.addr + "/metrics")
	if err != nil {
		v.Fatal(err)
	}
	found := openJobs.FindStringSubmatch(body)
	if found == nil {
		v.Fatal("the metrics do not tell the open jobs")
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		v.Fatal(err)
	}
	return n
}

// resident is the memory of the process in bytes, as the kernel counts it.
func (v *bench) resident() int {
	v.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", v.running.cmd.Process.Pid))
	if err != nil {
		v.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		v.Fatal(err)
	}
	return pages * os.Getpagesize()
}
