package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pendingStory is a log of accepted updates, as a process leaves it that died
// before it began with them.
const pendingStory = `
telegram/700000001/1 received "message":{"text":"enquiry 1"}
telegram/700000001/2 received "message":{"text":"enquiry 2"}
`

// T85: whatever became of the read models and of the agenda's snapshot, every
// job of the log is found and worked on.
func TestT85DerivedFilesLost(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*site){
		"deleted":           func(s *site) { s.remove(snapshotFile); s.remove(modelsFile + "*") },
		"snapshot empty":    func(s *site) { s.write("data/"+snapshotFile, "") },
		"snapshot garbage":  func(s *site) { s.write("data/"+snapshotFile, "\x00\xff{") },
		"snapshot null":     func(s *site) { s.write("data/"+snapshotFile, "null") },
		"snapshot a folder": func(s *site) { s.remove(snapshotFile); s.write("data/"+snapshotFile+"/x", "") },
		"models empty":      func(s *site) { s.remove(modelsFile + "*"); s.write("data/"+modelsFile, "") },
		"models garbage":    func(s *site) { s.remove(modelsFile + "*"); s.write("data/"+modelsFile, "no database") },
		"half a snapshot": func(s *site) {
			whole, err := os.ReadFile(s.path("data/" + snapshotFile))
			if err != nil {
				s.t.Fatal(err)
			}
			s.write("data/"+snapshotFile, string(whole[:len(whole)/2]))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, "none", brief)
			s.tell(pendingStory)
			s.suspend(s.crm) // nothing can be done for the first process
			s.terminate(s.serve("--workers", "1").program)
			spoil(s)
			s.crm.signal(resumed)
			v := s.serve()
			eventually(t, func() error { return ready(v) })
			eventually(t, func() error { return s.settled(2) })
			s.terminate(v.program)
		})
	}
}

// settled is an error unless each of the n updates is done, or waits for a
// person because its only request was cut.
func (s *site) settled(n int) error {
	jobs := s.jobs()
	for id, j := range jobs {
		if j.Phase != "done" && !j.Human {
			return fmt.Errorf("update %d is %s", id, j.Phase)
		}
	}
	if len(jobs) != n {
		return fmt.Errorf("%d jobs, want %d", len(jobs), n)
	}
	return nil
}

func (s *site) tell(story string) {
	s.t.Helper()
	s.write("story.txt", story)
	if err := tell(s.t.Context(), s.path("data/"+logFile), s.path("story.txt")); err != nil {
		s.t.Fatal(err)
	}
}

func ready(v server) error {
	status, body, err := get(v.url + "/readyz")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("not ready: %s", body)
	}
	return err
}

// remove removes files of the data folder.
func (s *site) remove(pattern string) {
	s.t.Helper()
	names, err := filepath.Glob(s.path("data/" + pattern))
	if err != nil || len(names) == 0 {
		s.t.Fatalf("no %s, %v", pattern, err)
	}
	for _, name := range names {
		if err := os.Remove(name); err != nil {
			s.t.Fatal(err)
		}
	}
}

// The read models are deleted under a running process: nothing of it is needed
// for a job.
func TestReadModelsDeletedUnderServe(t *testing.T) {
	t.Parallel()
	s := newSite(t, "unique_create", brief)
	v := s.serve()
	s.deliver(v, 1)
	s.await(v.program, "LeadConfirmed.*update_id=1 ")
	s.remove(modelsFile + "*")
	s.deliver(v, 2)
	s.await(v.program, "LeadConfirmed.*update_id=2 ")
	s.account(2)
	s.terminate(v.program)
}

// What serve leaves behind is for its owner alone.
func TestFilesAreForTheirOwner(t *testing.T) {
	t.Parallel()
	s := newSite(t, "unique_create", brief)
	v := s.serve()
	s.deliver(v, 1)
	s.terminate(v.program)
	err := filepath.WalkDir(s.path("data"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %s", d.Name(), info.Mode())
		}
		if strings.Contains(d.Name(), snapshotFile+".") {
			t.Errorf("%s was left behind", d.Name())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// The disk fills up under serve: 503 with Retry-After, and when there is space
// again, all goes on without a restart. Nothing that was acknowledged is lost.
func TestT20DiskFull(t *testing.T) {
	t.Parallel()
	s := newSite(t, "unique_create", brief)
	s.smallDisk("4m")
	s.write("data/ballast", strings.Repeat("x", 2<<20))
	v := s.serve("--logging-level", "info")
	s.deliver(v, 1)
	stored, full := int64(1), false
	for ; !full; stored++ {
		if stored > 500 {
			t.Fatal("the disk does not fill up")
		}
		status, after := s.deliverLarge(v, stored+1)
		switch {
		case status == http.StatusServiceUnavailable && after != "":
			full = true
			stored--
		case status != http.StatusOK:
			t.Fatalf("status %d with Retry-After %q", status, after)
		}
	}
	eventually(t, func() error { return notReady(v) })
	if err := os.Remove(s.path("data/ballast")); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if status, _ := s.deliverLarge(v, stored+1); status != http.StatusOK {
			return fmt.Errorf("status %d with space on the disk", status)
		}
		return nil
	})
	eventually(t, func() error { return ready(v) })
	eventually(t, func() error { return s.settled(int(stored) + 1) })
	s.audited()
	s.terminate(v.program)
}

func notReady(v server) error {
	if ready(v) == nil {
		return fmt.Errorf("it says that it is ready")
	}
	return nil
}

// deliverLarge delivers an update of 60 kB that asks for nothing.
func (s *site) deliverLarge(v server, id int64) (status int, retryAfter string) {
	s.t.Helper()
	body := fmt.Appendf(nil, `{"update_id":%d,"poll":{"question":"%s"}}`, id, strings.Repeat("?", 60_000))
	r, err := http.NewRequest(http.MethodPost, v.url+"/telegram/700000001", bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("X-Telegram-Bot-Api-Secret-Token", secret)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode, response.Header.Get("Retry-After")
}
