package sqlite

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"os"
	"strings"
	"testing"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/leadonce/leadonce/engine/eventlog"
)

const damagedEvents = 500 // several leaves of the B-tree

// one is a stream of all events, whose positions are their revisions + 1.
const one = "the-only-stream"

func fillOne(t *testing.T, path string) {
	t.Helper()
	l, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range damagedEvents / 100 {
		events := make([]eventlog.Proposed, 100)
		for i := range events {
			events[i] = event(strings.Repeat("x", 50))
		}
		mustAppend(t, l, one, eventlog.Any, events...)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// varint2 is SQLite's form of a number from 128 to 16383.
func varint2(n int) []byte { return []byte{0x80 | byte(n>>7), byte(n & 0x7f)} }

// renumber gives the row at a position another one, in the file's bytes alone.
// Its cell is: size of the record, rowid, 9 bytes of header, stream, revision.
func renumber(t *testing.T, path string, from, to int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	body := binary.BigEndian.AppendUint16([]byte(one), uint16(from-1))
	for at := 0; ; {
		i := bytes.Index(data[at:], body)
		if i < 0 {
			t.Fatalf("the row at position %d was not found", from)
		}
		rowid := at + i - 9 - 2
		if bytes.Equal(data[rowid:rowid+2], varint2(from)) {
			overwrite(t, path, int64(rowid), varint2(to))
			return
		}
		at += i + 1
	}
}

// ends reads until the end, and wants the events before it to be in order.
func ends(t *testing.T, events iter.Seq2[eventlog.Recorded, error], next uint64) (met uint64, failed error) {
	t.Helper()
	for e, err := range events {
		if failed != nil {
			t.Error("the loop went on behind its error")
		}
		if failed = err; err != nil {
			continue
		}
		if e.Revision != next {
			t.Errorf("met revision %d, want %d", e.Revision, next)
		}
		next, met = next+1, met+1
	}
	return met, failed
}

func wantDamaged(t *testing.T, err error, path string) {
	t.Helper()
	var d *DamagedError
	if !errors.As(err, &d) || !errors.Is(err, eventlog.ErrUnavailable) {
		t.Errorf("error is %v, want a DamagedError", err)
		return
	}
	for _, want := range []string{path, "is damaged: restore it from a backup; `leadonce audit verify` names the place"} {
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error is %q, want one line with %q", err, want)
		}
	}
}

func subscribed(t *testing.T, l *Log, after eventlog.Position) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	return l.Subscribe(ctx, after, func(context.Context, eventlog.Recorded) error { return nil })
}

// Two bytes of the file are flipped: the events behind them are not passed
// over, by whoever reads from before them.
func TestRenumberedRowIsNoEndOfTheLog(t *testing.T) {
	for name, c := range map[string]struct{ from, to int }{
		"behind the tail": {200, 9999}, "up": {200, 203}, "down": {200, 150}, "twice": {200, 201},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			fillOne(t, path)
			renumber(t, path, c.from, c.to)
			l := open(t, path, Options{PollInterval: time.Millisecond})
			for _, after := range []int{0, 140, c.from - 2, c.from - 1} {
				at := eventlog.Start
				if after > 0 {
					at = positionOf(int64(after))
				}
				met, err := ends(t, l.ReadAll(t.Context(), at), uint64(after))
				wantDamaged(t, err, path)
				if met > uint64(c.from-1-after) {
					t.Errorf("from %d: met %d events, want none behind the damage", after, met)
				}
				wantDamaged(t, subscribed(t, l, at), path)
			}
			wantDamaged(t, l.Check(t.Context()), path)
		})
	}
}

// Behind a renumbered newest row an append would be written over another
// event, so the file is not opened.
func TestRenumberedTailIsNotOpened(t *testing.T) {
	for _, c := range []struct{ from, to int }{
		{damagedEvents, damagedEvents - 1}, {damagedEvents, 200}, {damagedEvents, damagedEvents + 1}, {damagedEvents, 9999},
		{damagedEvents - 1, 9999},
	} {
		path := newPath(t)
		fillOne(t, path)
		renumber(t, path, c.from, c.to)
		l, err := Open(t.Context(), path, Options{})
		if err == nil {
			l.Close()
		}
		wantDamaged(t, err, path)
	}
}

// The same under an open log, where only a read can find it.
func TestGapMadeUnderAnOpenLog(t *testing.T) {
	for name, gap := range map[string]string{
		"at the tail": "UPDATE events SET position = 9999 WHERE position = (SELECT max(position) FROM events)",
		"a row gone":  "DELETE FROM events WHERE position = 200",
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			fillOne(t, path)
			l := open(t, path, Options{PollInterval: time.Millisecond})
			mustExec(t, stranger(t, path), "DROP TRIGGER events_are_never_changed; DROP TRIGGER events_are_never_deleted;"+gap)
			_, err := ends(t, l.ReadAll(t.Context(), eventlog.Start), 0)
			wantDamaged(t, err, path)
			wantDamaged(t, subscribed(t, l, eventlog.Start), path)
		})
	}
}

func TestGapInAStream(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, path string){
		"a row gone": func(t *testing.T, path string) {
			mustExec(t, stranger(t, path), "DROP TRIGGER events_are_never_deleted; DELETE FROM events WHERE revision = 300")
		},
		// The index then names another stream between two rows of this one.
		"a name in the index": func(t *testing.T, path string) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			entry := append([]byte(one), 300>>8, 300&0xff, 301>>8, 301&0xff)
			if !bytes.Contains(data, entry) {
				t.Fatal("the entry of the index was not found")
			}
			// Every copy: a page that was split keeps old ones in its free space.
			for at := len(data); ; {
				if at = bytes.LastIndex(data[:at], entry); at < 0 {
					break
				}
				overwrite(t, path, int64(at), []byte{'u'})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			fillOne(t, path)
			damage(t, path)
			l := open(t, path, Options{})
			for _, from := range []uint64{0, 299, 300} {
				met, err := ends(t, l.ReadStream(t.Context(), one, from), from)
				wantDamaged(t, err, path)
				if met != 300-from {
					t.Errorf("from %d: met %d events, want %d", from, met, 300-from)
				}
			}
			met, err := ends(t, l.ReadStream(t.Context(), one, 301), 301)
			if err == nil && met != damagedEvents-301 { // a misled seek is an error, too
				t.Errorf("behind the damage: met %d events and no error, want %d", met, damagedEvents-301)
			}
		})
	}
}

// Positions have no gaps, whatever became of the appends in between.
func TestNoOutcomeLeavesAGap(t *testing.T) {
	b := openBroken(t, newPath(t))
	first := event("x")
	mustAppend(t, b.Log, one, eventlog.NoStream, first)
	appendOf := func(stream string, expected eventlog.Expected, events ...eventlog.Proposed) func() error {
		return func() error {
			_, err := b.Append(t.Context(), stream, expected, events...)
			return err
		}
	}
	for range 3 { // conflicts and repeats, alone and between others
		_ = asOneBatch(t, b.Log, appendOf(one, eventlog.NoStream, event("conflict")), appendOf(one, eventlog.Any, event("x"), event("y")),
			appendOf(one, eventlog.Exactly(900), event("conflict"), event("conflict")), appendOf(one, eventlog.NoStream, first))
	}
	b.disk.walSyncFailsOnce.Store(sqlite3.SQLITE_IOERR_FSYNC)
	_ = asOneBatch(t, b.Log, appendOf("failed", eventlog.NoStream, event("x")), appendOf("failed-too", eventlog.NoStream, event("x"), event("y")))
	b.disk.walWriteFails.Store(sqlite3.SQLITE_FULL)
	_ = appendOf("full", eventlog.NoStream, event("x"))()
	b.disk.walWriteFails.Store(0)
	person := stranger(t, b.path)
	mustExec(t, person, "BEGIN IMMEDIATE; SAVEPOINT s; "+
		"INSERT INTO events (stream, revision, id, type, seconds, nanos, data) VALUES ('p', 0, zeroblob(16), 'T', 0, 0, x''); ROLLBACK TO s; ROLLBACK")
	mustAppend(t, b.Log, "last", eventlog.NoStream, event("x"))
	if err := b.Check(t.Context()); err != nil {
		t.Error(err)
	}
	next := int64(1)
	for e, err := range b.ReadAll(t.Context(), eventlog.Start) {
		if err != nil || rowidOf(e.Position) != next {
			t.Fatalf("position %v (%v), want %d", e.Position, err, next)
		}
		next++
	}
}

func TestCheckNamesWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct{ damage, want string }{
		"trigger":    {"DROP TRIGGER events_are_never_deleted", "the trigger events_are_never_deleted is missing"},
		"view":       {"DROP VIEW log", "the view log is missing"},
		"a row gone": {"DELETE FROM events WHERE position = 7", "499 events, but the newest position is 500"},
		"nothing":    {"SELECT 1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			fillOne(t, path)
			l := open(t, path, Options{})
			s := stranger(t, path)
			if strings.HasPrefix(c.damage, "DELETE") {
				trigger, err := s.value(t.Context(), "SELECT sql FROM sqlite_schema WHERE name = 'events_are_never_deleted'")
				if err != nil {
					t.Fatal(err)
				}
				c.damage = "DROP TRIGGER events_are_never_deleted; " + c.damage + "; " + trigger.(string)
			}
			mustExec(t, s, c.damage)
			err := l.Check(t.Context())
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantDamaged(t, err, path)
			if err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %q, want it to say %q", err, c.want)
			}
		})
	}
	if err := open(t, newPath(t), Options{}).Check(t.Context()); err != nil {
		t.Errorf("an empty log: %v", err)
	}
}
