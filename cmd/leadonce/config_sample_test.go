package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sampled is the configuration with only the key in it that the file of init shows as
// a comment.
func sampled(t *testing.T, key string) config {
	t.Helper()
	_, block, found := strings.Cut(string(sampleConfig), "\n# "+key+":\n")
	block, _, end := strings.Cut(block, "\n\n")
	if !found || !end {
		t.Fatalf("the file shows no %s", key)
	}
	path := filepath.Join(t.TempDir(), "leadonce.yaml")
	if err := os.WriteFile(path, []byte(key+":\n"+strings.ReplaceAll("\n"+block, "\n#", "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := readConfig(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// What the file of init shows in comments can be used.
func TestTheCommentsOfInitAreSound(t *testing.T) {
	if c := sampled(t, "rules"); len(c.Rules) != 3 || c.Rules[2].Series != 2*time.Minute {
		t.Errorf("%+v", c.Rules)
	}
	if c := sampled(t, "reply"); len(c.replies) != 2 || c.Reply.Within != 10*time.Minute {
		t.Errorf("%+v", c.Reply)
	}
}
