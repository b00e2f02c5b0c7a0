package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// Started in another folder, serve makes a log of its own beside the one that knows
// which leads were made: that is said, with both paths from the root.
func TestANewLogIsTold(t *testing.T) {
	t.Parallel()
	s := newSite(t, "unique_create", brief)
	root, err := filepath.EvalSymlinks(s.dir) // as the process sees it
	if err != nil {
		t.Fatal(err)
	}
	v := s.serve()
	for _, want := range []string{`level=WARN msg="a new log is made`, "--data-dir", "log=" + filepath.Join(root, "data", "log.db"), "data_dir=" + filepath.Join(root, "data") + " "} {
		if text, _ := v.output(); !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	s.terminate(v.program)
	v = s.serve()
	if text, _ := v.output(); strings.Contains(text, "a new log") {
		t.Errorf("the log is not new:\n%s", text)
	}
	s.terminate(v.program)
}
