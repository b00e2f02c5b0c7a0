package httponce

import (
	"errors"
	"net"
	"net/url"
	"testing"
	"time"
)

// TestNothingAfterTheJudgement: a write that another goroutine was about to make
// when Send said NotSent is refused.
func TestNothingAfterTheJudgement(t *testing.T) {
	ours, theirs := net.Pipe()
	_ = theirs.Close() // a write that is let through fails at once
	c := &call{deadline: time.Now().Add(time.Hour), now: time.Now}
	c.begin()
	guarded := &conn{Conn: ours, call: c}
	defer guarded.Close()
	if c.seal() {
		t.Fatal("something was written")
	}
	if n, err := guarded.Write([]byte("POST")); n != 0 || !errors.Is(err, errSealed) || c.seal() {
		t.Fatalf("%d bytes, %v", n, err)
	}
}

// TestNoBodyToRewind: net/http sends a body again only where it can be had again.
func TestNoBodyToRewind(t *testing.T) {
	request, err := Request{Method: "POST", URL: &url.URL{Scheme: "http", Host: "crm.example"}, Body: []byte("x")}.withContext(t.Context())
	if err != nil || request.GetBody != nil {
		t.Fatalf("the body can be had again, or %v", err)
	}
}
