package kurrentdb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/kurrentdb/kurrentdbtest"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/ingress/metrics"
)

// TestDefaultStreamsAreTheEngines: a stream of the engine that no prefix takes
// in would be refused.
func TestDefaultStreamsAreTheEngines(t *testing.T) {
	got := Config{}.withDefaults().Streams
	if want := []string{job.JobStreams, job.OperationStreams, job.ChatStreams, job.SeriesStreams, job.ReplyStreams, job.BotStreams, metrics.ProbeStream}; !slices.Equal(got, want) {
		t.Errorf("the default prefixes are %q, those of the engine %q", got, want)
	}
	server := newServer(t)
	l := openLog(t, Config{Connection: server.ConnectionString()})
	mustAppend(t, l, "update-1-2", eventlog.NoStream, event("x"))
	if _, err := l.Append(t.Context(), "other-1", eventlog.NoStream, event("x")); !errors.Is(err, eventlog.ErrInvalid) {
		t.Errorf("error is %v, want ErrInvalid", err)
	}
}

func TestConfigIsRefused(t *testing.T) {
	const server = "esdb://admin:s3cret@localhost:2113?tls=true"
	for name, test := range map[string]struct {
		config Config
		says   string
	}{
		"no connection":               {Config{}, "connection string"},
		"the new name of the scheme":  {Config{Connection: "kurrentdb://admin:s3cret@localhost:2113?tls=1"}, "true or false"},
		"another scheme":              {Config{Connection: "http://admin:s3cret@x"}, "esdb://"},
		"unknown setting":             {Config{Connection: server + "&maxAppendSize=1"}, "maxAppendSize"},
		"? and & in the password":     {Config{Connection: "esdb://admin:ab?s3cret&y@localhost:2113"}, "%3F"},
		"? and = in the password":     {Config{Connection: "esdb://admin:ab?s3cret=1@localhost:2113"}, "%3F"},
		"? in the password":           {Config{Connection: "esdb://admin:ab?s3cret@localhost:2113?tls=false"}, "%3F"},
		"setting twice":               {Config{Connection: server + "&tls=true"}, "2 times"},
		"no truth value":              {Config{Connection: "esdb://admin:s3cret@localhost:2113?tls=flase"}, "tls: give true or false"},
		"no number":                   {Config{Connection: server + "&keepAliveTimeout=1s"}, "keepAliveTimeout: give a whole number"},
		"no such file":                {Config{Connection: server + "&tlsCaFile=/no/such.crt"}, "tlsCaFile: open /no/such.crt"},
		"a certificate without a key": {Config{Connection: server + "&userCertFile=open_test.go"}, "go together"},
		"@ in the password":           {Config{Connection: "esdb://admin:a@s3cret@localhost:2113?tls=true"}, "%40"},
		"a login without TLS":         {Config{Connection: "esdb://admin:s3cret@localhost:2113?tls=false"}, "tls=true"},
		"not the leader":              {Config{Connection: server + "&nodePreference=follower"}, "leave it out"},
		"no keepalive":                {Config{Connection: server + "&keepAliveInterval=-1"}, "leave it out"},
		"unparsable port":             {Config{Connection: "esdb://admin:s3cret@localhost:21x3"}, "esdb://"},
		"namespace with a dash":       {Config{Connection: server, Namespace: "a-b"}, "namespace"},
		"namespace too long":          {Config{Connection: server, Namespace: strings.Repeat("n", 41)}, "namespace"},
		"all streams":                 {Config{Connection: server, Streams: []string{""}}, "needs a namespace"},
		"streams of the server":       {Config{Connection: server, Streams: []string{"$ce-"}}, "needs a namespace"},
		"gossip without any patience": {Config{Connection: server + "&gossipTimeout=0"}, "gossipTimeout"},
	} {
		_, err := Open(t.Context(), test.config)
		if check := test.config.Check(); check == nil || err == nil || err.Error() != "open log: "+check.Error() {
			t.Errorf("%s: the check says %v, and the log %v", name, check, err)
			continue
		}
		if !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error is %v, want one line with %q and without the password", name, err, test.says)
		}
	}
}

// TestOpenSaysWhatIsWrong, in one line, without the password.
func TestOpenSaysWhatIsWrong(t *testing.T) {
	server := kurrentdbtest.Start(t, kurrentdbtest.Options{
		TLS: true, User: "admin", Password: "s3cret", PlainUser: "plain", PlainPassword: "s3cret2",
	})
	config := testConfig(server)
	mustAppend(t, openLog(t, config), "s", eventlog.NoStream, event("over TLS, by the administrator"))
	for name, test := range map[string]struct{ from, to, says string }{
		"may not read $all": {"admin:s3cret", "plain:s3cret2", "$all"},
		"wrong password":    {"admin:s3cret", "admin:wr0ng", "password"},
		"unknown authority": {"tlsCAFile", "tlsVerifyCert=true&x", ""},
	} {
		c := config
		c.Connection = strings.Replace(c.Connection, test.from, test.to, 1)
		if name == "unknown authority" {
			c.Connection, _, _ = strings.Cut(c.Connection, "?")
		}
		_, err := Open(t.Context(), c)
		if err == nil || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), server.Address()) ||
			strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "wr0ng") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error is %v, want one line with %q and the server", name, err, test.says)
		}
	}
	server.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := Open(ctx, config); !errors.Is(err, eventlog.ErrUnavailable) || !strings.Contains(err.Error(), server.Address()) {
		t.Errorf("without a server: error is %v", err)
	}
}

// TestNamespacesDoNotSeeEachOther, nor the server's own events.
func TestNamespacesDoNotSeeEachOther(t *testing.T) {
	server := newServer(t)
	a, b := testConfig(server), testConfig(server)
	a.Namespace, b.Namespace = "a", "ab"
	logs := []*Log{openLog(t, a), openLog(t, b), openLog(t, Config{Connection: server.ConnectionString()})}
	var events [3][]eventlog.Proposed
	for round := range 2 {
		for i, l := range logs {
			e := event(fmt.Sprint(round, i))
			events[i] = append(events[i], e)
			mustAppend(t, l, "update-1", eventlog.Any, e)
		}
	}
	for i, l := range logs {
		follow(t, l, eventlog.Start).expect(events[i]...)
		n := 0
		for r, err := range l.ReadAll(t.Context(), eventlog.Start) {
			if err != nil || r.Stream != "update-1" || r.ID != events[i][n].ID {
				t.Errorf("log %d has the event %s of %s, error %v", i, r.Data, r.Stream, err)
			}
			n++
		}
		tail, err := l.Tail(t.Context())
		if want := lastOf(l, t); n != 2 || err != nil || tail != want {
			t.Errorf("log %d has %d events and its tail at %s (error %v), want 2 and %s", i, n, tail, err, want)
		}
	}
}

func lastOf(l *Log, t testing.TB) (at eventlog.Position) {
	for r := range l.ReadAll(t.Context(), eventlog.Start) {
		at = r.Position
	}
	return at
}
