package kurrentdbtest

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// TestMain looks for leaks of the server. The client library leaks its
// connection whenever it connects again, so what waits in one is not counted.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("google.golang.org/grpc/internal/grpcsync.(*CallbackSerializer).run"),
		goleak.IgnoreAnyFunction("google.golang.org/grpc.(*addrConn).resetTransportAndUnlock"))
}

// connect is a bare client of the server, closed with the test.
func connect(t *testing.T, s *Server) *esdb.Client {
	t.Helper()
	config, err := esdb.ParseConnectionString(s.ConnectionString())
	if err != nil {
		t.Fatal(err)
	}
	config.Logger = esdb.NoopLogging()
	client, err := esdb.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// soon is a context for what must not hang.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func ids(n int) []uuid.UUID {
	list := make([]uuid.UUID, n)
	for i := range list {
		list[i] = uuid.New()
	}
	return list
}

func events(list ...uuid.UUID) []esdb.EventData {
	data := make([]esdb.EventData, len(list))
	for i, id := range list {
		data[i] = esdb.EventData{EventID: id, EventType: "Happened", ContentType: esdb.ContentTypeJson, Data: []byte(`{"n":1}`)}
	}
	return data
}

func append1(t *testing.T, c *esdb.Client, stream string, expected esdb.ExpectedRevision, list ...uuid.UUID) (*esdb.WriteResult, error) {
	t.Helper()
	return c.AppendToStream(soon(t), stream, esdb.AppendToStreamOptions{ExpectedRevision: expected}, events(list...)...)
}

func mustAppend(t *testing.T, c *esdb.Client, stream string, expected esdb.ExpectedRevision, list ...uuid.UUID) *esdb.WriteResult {
	t.Helper()
	w, err := append1(t, c, stream, expected, list...)
	if err != nil {
		t.Fatalf("append to %s: %v", stream, err)
	}
	return w
}

// drain reads a stream to its end.
func drain(t *testing.T, stream *esdb.ReadStream, err error) ([]*esdb.RecordedEvent, error) {
	t.Helper()
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	var got []*esdb.RecordedEvent
	for {
		e, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		got = append(got, e.Event)
	}
}

// rawClient is the protocol without the client library.
func rawClient(t *testing.T, s *Server) streams.StreamsClient {
	t.Helper()
	conn, err := grpc.NewClient(s.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return streams.NewStreamsClient(conn)
}

// codeOf is the client library's code of an error, -1 if it has none.
func codeOf(err error) esdb.ErrorCode {
	var failed *esdb.Error
	if errors.As(err, &failed) {
		return failed.Code()
	}
	return -1
}

func readStream(t *testing.T, c *esdb.Client, stream string, o esdb.ReadStreamOptions, count uint64) ([]*esdb.RecordedEvent, error) {
	t.Helper()
	rs, err := c.ReadStream(soon(t), stream, o, count)
	return drain(t, rs, err)
}

func readAll(t *testing.T, c *esdb.Client, o esdb.ReadAllOptions, count uint64) ([]*esdb.RecordedEvent, error) {
	t.Helper()
	rs, err := c.ReadAll(soon(t), o, count)
	return drain(t, rs, err)
}

// revisions of events that must be of one stream.
func revisions(list []*esdb.RecordedEvent) []uint64 {
	numbers := []uint64{}
	for _, e := range list {
		numbers = append(numbers, e.EventNumber)
	}
	return numbers
}

// span is the numbers from first to last, down if last is smaller.
func span(first, last int) []uint64 {
	numbers := []uint64{}
	for first <= last {
		numbers = append(numbers, uint64(first))
		first++
	}
	if len(numbers) == 0 {
		for ; first >= last; first-- {
			numbers = append(numbers, uint64(first))
		}
	}
	return numbers
}
