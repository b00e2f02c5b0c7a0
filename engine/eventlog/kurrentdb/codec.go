package kurrentdb

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// namespace maps the streams of the log to those of the server.
type namespace struct {
	prefix  string   // "" or "<namespace>."
	streams []string // prefixes of the log's streams
}

const maxNamespace = 40 // bytes

func newNamespace(c Config) (namespace, error) {
	if len(c.Namespace) > maxNamespace {
		return namespace{}, fmt.Errorf("namespace has %d bytes, at most %d", len(c.Namespace), maxNamespace)
	}
	for _, b := range []byte(c.Namespace) {
		if b != '_' && (b < '0' || b > '9') && (b < 'a' || b > 'z') && (b < 'A' || b > 'Z') {
			return namespace{}, fmt.Errorf("namespace %q has other characters than A-Z, a-z, 0-9 and _", c.Namespace)
		}
	}
	n := namespace{streams: c.Streams}
	if c.Namespace != "" {
		n.prefix = c.Namespace + "."
		return n, nil
	}
	for _, s := range c.Streams {
		if s == "" || s[0] == '$' {
			return namespace{}, fmt.Errorf("prefix of streams %q needs a namespace: without one it takes in the server's own streams", s)
		}
	}
	return n, nil
}

func (n namespace) has(stream string) bool {
	for _, s := range n.streams {
		if strings.HasPrefix(stream, s) {
			return true
		}
	}
	return false
}

func (n namespace) on(stream string) string { return n.prefix + stream }

// of is the log's name of a stream of the server; ok is false for one that is
// not the log's.
func (n namespace) of(serverStream string) (stream string, ok bool) {
	stream, ok = strings.CutPrefix(serverStream, n.prefix)
	return stream, ok && n.has(stream)
}

// filter is the prefixes as the server knows them.
func (n namespace) filter() []string {
	list := make([]string, len(n.streams))
	for i, s := range n.streams {
		list[i] = n.prefix + s
	}
	return list
}

// The metadata of an event: the server's own time is that of the recording, in
// 100 ns. Nothing in front of or behind the time differs, so that the usual case
// needs no JSON parser.
const (
	timeBegins = `{"time":"`
	timeEnds   = `"}`
)

// messages are the events as the client takes them. They share no bytes with
// the caller's: a call that was given up may still read them.
func messages(events []eventlog.Proposed) []esdb.EventData {
	list := make([]esdb.EventData, len(events))
	for i, e := range events {
		contentType := esdb.ContentTypeBinary
		if looksLikeObject(e.Data) {
			contentType = esdb.ContentTypeJson
		}
		list[i] = esdb.EventData{
			EventID:     uuid.UUID(e.ID),
			EventType:   e.Type,
			ContentType: contentType,
			Data:        append(make([]byte, 0, len(e.Data)), e.Data...),
			Metadata:    []byte(timeBegins + e.Time.UTC().Format(time.RFC3339Nano) + timeEnds),
		}
	}
	return list
}

// looksLikeObject decides how the server's console shows the data, and nothing
// else: the bytes stay as they are. To parse them would cost more than the rest of
// what Append does.
func looksLikeObject(data []byte) bool {
	return len(data) >= 2 && data[0] == '{' && data[len(data)-1] == '}'
}

// sizeOf is what the server counts against its limits.
func sizeOf(list []esdb.EventData) int {
	n := 0
	for _, m := range list {
		n += len(m.Data) + len(m.Metadata) + 2*len(m.EventType)
	}
	return n
}

// recorded is the event as the port knows it.
func recorded(stream string, e *esdb.RecordedEvent) eventlog.Recorded {
	data := e.Data
	if data == nil {
		data = []byte{}
	}
	return eventlog.Recorded{
		Stream:   stream,
		Revision: e.EventNumber,
		Position: positionOf(e.Position),
		ID:       eventlog.EventID(e.EventID),
		Type:     e.EventType,
		Time:     timeOf(e),
		Data:     data,
	}
}

// timeOf is when the event happened. One that this package did not write has the
// server's time: it stops whoever cannot read it, and not the log.
func timeOf(e *esdb.RecordedEvent) time.Time {
	text, begins := bytes.CutPrefix(e.UserMetadata, []byte(timeBegins))
	text, ends := bytes.CutSuffix(text, []byte(timeEnds))
	if at, err := time.Parse(time.RFC3339Nano, string(text)); begins && ends && err == nil {
		return at.UTC()
	}
	return e.CreatedDate.UTC()
}

func positionOf(p esdb.Position) eventlog.Position { return eventlog.NewPosition(p.Commit, p.Prepare) }

// fromPosition is where the client begins. For a read it is inclusive, for a
// subscription exclusive.
func fromPosition(p eventlog.Position) esdb.AllPosition {
	if p == eventlog.Start {
		return esdb.Start{}
	}
	commit, prepare := p.Parts()
	return esdb.Position{Commit: commit, Prepare: prepare}
}
