package crmsim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// journal is the file behind the ledger. An entry is in the file, by one write, before it counts; so
// what a client or an oracle was told survives the death of the process (not of the machine: no fsync).
type journal struct {
	file *os.File // nil when the journal is kept in memory only
}

var errForeign = fmt.Errorf("not a crmsim journal of version %d: name another file", journalVersion)

// openJournal folds every whole line of the file and cuts off a torn last one.
func openJournal(path string, class Class, now time.Time, fold func(entry) error) (*journal, error) {
	if path == "" {
		return &journal{}, nil
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("crmsim: JournalPath: %w", err)
	}
	j := &journal{file: file}
	if err := j.load(class, now, fold); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("crmsim: JournalPath %s: %w", path, err)
	}
	return j, nil
}

func (j *journal) load(class Class, now time.Time, fold func(entry) error) error {
	if info, err := j.file.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, errors.New("not a regular file: name another file"))
	}
	whole, lines, err := readEntries(j.file, class, fold)
	if err != nil {
		return err
	}
	if err := j.file.Truncate(whole); err != nil {
		return err
	}
	if _, err := j.file.Seek(whole, io.SeekStart); err != nil {
		return err
	}
	if lines > 0 {
		return nil
	}
	return j.append(entry{Kind: kindOpened, At: now, Version: journalVersion, Class: class})
}

// readEntries returns how many bytes and how many lines were whole.
func readEntries(file io.Reader, class Class, fold func(entry) error) (whole int64, lines int, err error) {
	reader := bufio.NewReader(file)
	for {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return whole, lines, checkTorn(line, lines)
		}
		if err != nil {
			return 0, 0, err
		}
		lines++
		if err := foldLine(line, lines, class, fold); err != nil {
			return 0, 0, fmt.Errorf("line %d: %w", lines, err)
		}
		whole += int64(len(line))
	}
}

// checkTorn saves a foreign file of a single unended line from being cut to nothing.
func checkTorn(torn []byte, linesBefore int) error {
	start := []byte(`{"kind":"opened",`)
	if linesBefore > 0 || bytes.HasPrefix(torn, start) || bytes.HasPrefix(start, torn) {
		return nil
	}
	return errForeign
}

func foldLine(line []byte, number int, class Class, fold func(entry) error) error {
	var e entry
	err := json.Unmarshal(line, &e)
	switch {
	case number == 1 && (err != nil || e.Kind != kindOpened || e.Version != journalVersion):
		return errForeign
	case number == 1 && e.Class != class:
		return fmt.Errorf("written by class %s: start with that class, or name another file", e.Class)
	case number == 1:
		return nil
	case err != nil:
		return err
	default:
		return fold(e)
	}
}

func (j *journal) append(e entry) error {
	if j.file == nil {
		return nil
	}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = j.file.Write(append(line, '\n'))
	return err
}

func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	return j.file.Close()
}
