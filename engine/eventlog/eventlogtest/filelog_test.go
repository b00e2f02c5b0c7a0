package eventlogtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
)

// fileLog is the memory log with a journal that several processes share: the
// least that survives kill -9. Its reads see other processes only up to its own
// last append.
type fileLog struct {
	*memory.Log
	broken fileBreakage

	mu     sync.Mutex
	file   *os.File
	offset int64
	held   []byte // written with a later append; only in a broken one
}

// fileBreakage is what a fileLog does wrong.
type fileBreakage int

const (
	acknowledgesBeforeWriting fileBreakage = iota + 1
	writesLastEventLater
	ignoresOtherProcesses
)

// line is one append in the journal.
type line struct {
	Stream   string
	Revision uint64 // of the first event
	Events   []eventlog.Proposed
}

func openFile(b breakage) func(dir string) (eventlog.Log, error) {
	return func(dir string) (eventlog.Log, error) {
		file, err := os.OpenFile(filepath.Join(dir, "journal"), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		l := &fileLog{Log: memory.New(), broken: b.file, file: file}
		return l, l.catchUp()
	}
}

func (l *fileLog) Close() error { return l.file.Close() }

func (l *fileLog) Append(ctx context.Context, stream string, expected eventlog.Expected, events ...eventlog.Proposed) (eventlog.Appended, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != ignoresOtherProcesses {
		if err := syscall.Flock(int(l.file.Fd()), syscall.LOCK_EX); err != nil {
			return eventlog.Appended{}, err
		}
		defer syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN)
		if err := l.catchUp(); err != nil {
			return eventlog.Appended{}, err
		}
	}
	before, _ := l.Tail(ctx)
	at, err := l.Log.Append(ctx, stream, expected, events...)
	if err != nil || at.Position.Compare(before) <= 0 {
		return at, err
	}
	return at, l.write(line{stream, at.Revision + 1 - uint64(len(events)), events})
}

func (l *fileLog) write(entry line) error {
	if n := len(entry.Events); l.broken == writesLastEventLater && n > 1 {
		last := line{entry.Stream, entry.Revision + uint64(n-1), entry.Events[n-1:]}
		entry.Events = entry.Events[:n-1]
		defer func() { l.held, _ = json.Marshal(last); l.held = append(l.held, '\n') }()
	}
	text, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	text = append(append(l.held, text...), '\n')
	l.held = nil
	if l.broken == acknowledgesBeforeWriting && bytes.Count(text, []byte("\n")) < 10 {
		l.held = text
		return nil
	}
	if err := l.file.Truncate(l.offset); err != nil { // what a killed process wrote of a line
		return err
	}
	n, err := l.file.WriteAt(text, l.offset)
	l.offset += int64(n)
	return err
}

// catchUp reads what was appended to the journal since.
func (l *fileLog) catchUp() error {
	text, err := io.ReadAll(io.NewSectionReader(l.file, l.offset, 1<<40))
	if err != nil {
		return err
	}
	for entry := range bytes.Lines(text) {
		if !bytes.HasSuffix(entry, []byte("\n")) {
			return nil // SIGKILL can cut a write in two: this one was never acknowledged
		}
		var e line
		if err := json.Unmarshal(entry, &e); err != nil {
			return fmt.Errorf("journal at %d: %w", l.offset, err)
		}
		expected := eventlog.NoStream
		if e.Revision > 0 {
			expected = eventlog.Exactly(e.Revision - 1)
		}
		if _, err := l.Log.Append(context.Background(), e.Stream, expected, e.Events...); err != nil {
			return fmt.Errorf("journal at %d: %w", l.offset, err)
		}
		l.offset += int64(len(entry))
	}
	return nil
}

// TestFileLogOutlivesACutWrite: the kernel stops a write at a page's end when the
// process is killed. So the suite's own sound log must take a part of a line for
// nothing, or kill -9 finds it unsound now and then.
func TestFileLogOutlivesACutWrite(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	open := func() eventlog.Log {
		l, err := openFile(breakage{})(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.(io.Closer).Close() })
		return l
	}
	event := func(n byte, size int) eventlog.Proposed {
		return eventlog.Proposed{ID: eventlog.EventID{n}, Type: "Tested", Time: time.Unix(1, 0), Data: bytes.Repeat([]byte("x"), size)}
	}
	first := open()
	for n := range 2 {
		if _, err := first.Append(ctx, "s", eventlog.Any, event(byte(n+1), 100)); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(dir, "journal")
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for cut := bytes.IndexByte(whole, '\n') + 1; cut < len(whole); cut++ {
		if err := os.WriteFile(name, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		for revision := range uint64(2) { // one goes on, and another process reads that
			at, err := open().Append(ctx, "s", eventlog.Any, event(byte(10+revision), 1))
			if err != nil || at.Revision != revision+1 {
				t.Fatalf("cut at %d: %+v, error %v, want revision %d", cut, at, err, revision+1)
			}
		}
	}
}
