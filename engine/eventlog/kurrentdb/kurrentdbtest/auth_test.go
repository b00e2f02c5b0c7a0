package kurrentdbtest

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"google.golang.org/grpc/metadata"
)

// as is a client of the server with another user.
func as(t *testing.T, s *Server, user, password string) *esdb.Client {
	t.Helper()
	config, err := esdb.ParseConnectionString(s.ConnectionString())
	if err != nil {
		t.Fatal(err)
	}
	config.Username, config.Password, config.Logger = user, password, esdb.NoopLogging()
	c, err := esdb.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestUsers(t *testing.T) {
	s := Start(t, Options{TLS: true, User: "admin", Password: "changeit", PlainUser: "leads", PlainPassword: "secret"})
	admin := connect(t, s)
	plainUser := as(t, s, "leads", "secret")
	const fine = esdb.ErrorCode(-1)
	try := func(what string, c *esdb.Client, want esdb.ErrorCode, f func(*esdb.Client) error) {
		t.Helper()
		err := f(c)
		refusedEarly := want != fine && err != nil && strings.Contains(err.Error(), "EOF") // in sending the events
		if codeOf(err) != want && !refusedEarly {
			t.Errorf("%s answered %v, want code %d", what, err, want)
		}
	}
	write := func(stream string) func(*esdb.Client) error {
		return func(c *esdb.Client) error {
			_, err := append1(t, c, stream, esdb.Any{}, uuid.New())
			return err
		}
	}
	all := func(c *esdb.Client) error {
		_, err := readAll(t, c, esdb.ReadAllOptions{From: esdb.Start{}}, 1)
		return err
	}
	one := func(c *esdb.Client) error {
		_, err := readStream(t, c, "order-1", esdb.ReadStreamOptions{From: esdb.Start{}}, 1)
		return err
	}
	try("the administrator writing", admin, fine, write("order-1"))
	try("the administrator reading $all", admin, fine, all)
	try("a user writing", plainUser, fine, write("order-1"))
	try("a user reading", plainUser, fine, one)
	try("a user writing a system stream", plainUser, esdb.ErrorCodeAccessDenied, write("$mine"))
	try("a user reading $all", plainUser, esdb.ErrorCodeAccessDenied, all)
	try("nobody writing", as(t, s, "", ""), esdb.ErrorCodeAccessDenied, write("order-1"))
	try("nobody reading", as(t, s, "", ""), esdb.ErrorCodeAccessDenied, one)
	try("a wrong password", as(t, s, "leads", "guess"), esdb.ErrorCodeUnauthenticated, write("order-1"))
	try("an unknown user", as(t, s, "eve", "secret"), esdb.ErrorCodeUnauthenticated, one)
	if lengthOf(s, "order-1") != 2 {
		t.Errorf("%d events", lengthOf(s, "order-1"))
	}

	grant := esdb.EventData{EventID: uuid.New(), EventType: "$metadata", ContentType: esdb.ContentTypeJson, Data: []byte(`{"$acl":{"$r":["$admins","leads"]}}`)}
	if _, err := admin.AppendToStream(soon(t), "$$$all", esdb.AppendToStreamOptions{ExpectedRevision: esdb.Any{}}, grant); err != nil {
		t.Fatal(err)
	}
	try("a user reading $all that was granted", plainUser, fine, all)
	try("a user changing who may read $all", plainUser, esdb.ErrorCodeAccessDenied, write("$$$all"))
}

func TestTheAuthorityIsDemanded(t *testing.T) {
	s := Start(t, Options{TLS: true})
	if !strings.HasPrefix(s.ConnectionString(), "esdb://127.0.0.1:") || !strings.Contains(s.ConnectionString(), "tlsCAFile=") {
		t.Errorf("connection string %s", s.ConnectionString())
	}
	if pem, err := os.ReadFile(s.CAFile()); err != nil || !strings.HasPrefix(string(pem), "-----BEGIN CERTIFICATE-----") {
		t.Errorf("the authority's file has %q, %v", pem, err)
	}
	mustAppend(t, connect(t, s), "order-1", esdb.NoStream{}, ids(1)...)
	config, err := esdb.ParseConnectionString("esdb://" + s.Address() + "?tls=true&maxDiscoverAttempts=1")
	if err != nil {
		t.Fatal(err)
	}
	config.Logger = esdb.NoopLogging()
	stranger, err := esdb.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	if _, err := append1(t, stranger, "order-1", esdb.Any{}, ids(1)...); err == nil {
		t.Error("a client that does not know the authority was content")
	}
}

func TestCallsAreRecorded(t *testing.T) {
	s := Start(t, Options{})
	c := rawClient(t, s)
	ctx := metadata.AppendToOutgoingContext(soon(t), "requires-leader", "true")
	call, err := c.Append(ctx)
	if err != nil {
		t.Fatal(err)
	}
	o := &streams.AppendReq_Options{StreamIdentifier: named("order-1"), ExpectedStreamRevision: &streams.AppendReq_Options_Any{Any: &shared.Empty{}}}
	if err := errors.Join(call.Send(header(o)), call.Send(message(plain(uuid.New())))); err != nil {
		t.Fatal(err)
	}
	if _, err := call.CloseAndRecv(); err != nil {
		t.Fatal(err)
	}
	lib := connect(t, s)
	mustAppend(t, lib, "order-2", esdb.Any{}, ids(1)...)
	hear(t, subscribeAll(t, lib, esdb.SubscribeToAllOptions{From: esdb.End{}}), "live", 1)
	want := []Call{{"Append", "order-1", true, ""}, {"Append", "order-2", false, ""}, {"Subscribe", "$all", false, ""}}
	if got := s.Calls(); !slices.Equal(got, want) {
		t.Errorf("calls %+v, want %+v", got, want)
	}
}

func TestAStaleReadThatRequiresTheLeader(t *testing.T) {
	s := Start(t, Options{})
	mustAppend(t, connect(t, s), "order-1", esdb.NoStream{}, ids(1)...)
	s.Inject(Fault{Point: ReadStale, Behind: 1})
	var trailers metadata.MD
	ctx := metadata.AppendToOutgoingContext(soon(t), "requires-leader", "true")
	call, err := rawClient(t, s).Read(ctx, &streams.ReadReq{Options: rawStream("order-1", 0, 1, 0)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = call.Recv()
	trailers = call.Trailer()
	if got := trailers.Get("exception"); err == nil || len(got) != 1 || got[0] != "not-leader" {
		t.Errorf("answered %v, trailers %v", err, trailers)
	}
}

func TestDiscovery(t *testing.T) {
	s := Start(t, Options{})
	config, err := esdb.ParseConnectionString("esdb+discover://" + s.Address() + "?tls=false")
	if err != nil {
		t.Fatal(err)
	}
	config.Logger = esdb.NoopLogging()
	c, err := esdb.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	mustAppend(t, c, "order-1", esdb.NoStream{}, ids(1)...)
	version, err := c.GetServerVersion()
	if err != nil || version.Major != 25 {
		t.Errorf("version %+v, %v", version, err)
	}
}
