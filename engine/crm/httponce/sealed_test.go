package httponce

import (
	"errors"
	"net"
	"testing"
	"time"
)

// TestNothingAfterTheJudgement: a write that another goroutine was about to make
// when Send said NotSent is refused.
func TestNothingAfterTheJudgement(t *testing.T) {
	ours, theirs := net.Pipe()
	_ = theirs.Close() // a write that is let through fails at once
	c := &call{deadline: time.Now().Add(time.Hour), now: time.Now}
	guarded := &conn{Conn: ours, call: c, carries: true}
	defer guarded.Close()
	if c.seal() {
		t.Fatal("something was written")
	}
	if n, err := guarded.Write([]byte("POST")); n != 0 || !errors.Is(err, errSealed) || c.seal() {
		t.Fatalf("%d bytes, %v", n, err)
	}
}
