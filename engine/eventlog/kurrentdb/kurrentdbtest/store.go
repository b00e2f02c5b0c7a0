package kurrentdbtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	deletedStream   = math.MaxInt64 // revision of a tombstone, and $tb of a soft-deleted stream
	recordOverhead  = 68            // bytes of a log record besides its names and payload
	epochRecordSize = 190           // bytes that every start of a node adds to the log, outside of $all
	metadataType    = "$metadata"
	tombstoneType   = "$streamDeleted"
)

// record is one event in the log. It never changes after it was written.
type record struct {
	Pos      int64     `json:"pos"` // byte offset of its start: commit and prepare position
	End      int64     `json:"end"` // byte offset behind it
	Stream   string    `json:"stream"`
	Revision int64     `json:"rev"`
	ID       uuid.UUID `json:"id"`
	Type     string    `json:"type"`
	JSON     bool      `json:"json,omitempty"`
	Created  int64     `json:"created"` // ticks of 100 ns since the Unix epoch
	Data     []byte    `json:"data,omitempty"`
	Meta     []byte    `json:"meta,omitempty"`
}

func (r *record) at() position { return position{r.Pos, r.Pos} }

// line is one step of the log's history in the data file: what one append
// wrote, or what was done to the log as a whole.
type line struct {
	Records  []*record `json:"records,omitempty"`
	Epoch    int64     `json:"epoch,omitempty"` // bytes that a start of the node took
	Lost     int       `json:"lost,omitempty"`  // newest records that a failed leader took with it
	Scavenge bool      `json:"scavenge,omitempty"`
}

// streamLog is the events of one stream; a revision is an index into events.
type streamLog struct {
	events    []*record
	tombstone *record
}

// store is the log and its index. The writer sees all of records, readers see
// those that are indexed.
type store struct {
	mu        sync.Mutex
	records   []*record
	indexed   int   // how many of records readers see
	end       int64 // the writer's checkpoint: where the next record will start
	streams   map[string]*streamLog
	scavenged map[*record]bool
	cache     *idCache
	holds     int           // who keeps the index back
	changed   chan struct{} // closed when indexed changes
	now       func() time.Time
	path      string
	file      *os.File
}

func newStore(path string, cacheBytes int64, now func() time.Time) (*store, error) {
	s := &store{path: path, cache: newIDCache(cacheBytes), now: now}
	s.forget()
	if path == "" {
		return s, nil
	}
	return s, s.load()
}

// forget empties memory. The caller holds the lock or is alone.
func (s *store) forget() {
	s.records, s.indexed, s.end = nil, 0, 0
	s.streams, s.scavenged = map[string]*streamLog{}, map[*record]bool{}
	s.cache.clear()
	s.wake()
}

func (s *store) wake() {
	if s.changed != nil {
		close(s.changed)
	}
	s.changed = make(chan struct{})
}

func (s *store) load() error {
	data, err := os.ReadFile(s.path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read data file: %w", err)
	}
	whole := 0
	for i, text := range strings.SplitAfter(string(data), "\n") {
		if !strings.HasSuffix(text, "\n") {
			break // an append that was never answered
		}
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			return fmt.Errorf("data file %s, line %d: %w", s.path, i+1, err)
		}
		whole += len(text)
		s.apply(l)
	}
	s.indexed = len(s.records)
	if s.file, err = os.OpenFile(s.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return fmt.Errorf("open data file: %w", err)
	}
	if err := s.file.Truncate(int64(whole)); err != nil {
		return errors.Join(fmt.Errorf("cut the torn end of data file %s: %w", s.path, err), s.file.Close())
	}
	return nil
}

// save writes a line to the data file, so that it survives the death of the
// process, though not of the machine.
func (s *store) save(l line) error {
	if s.path == "" {
		return nil
	}
	text, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("encode for data file: %w", err)
	}
	if _, err := s.file.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("write data file %s: %w", s.path, err)
	}
	return nil
}

func (s *store) apply(l line) {
	for _, r := range l.Records {
		s.records = append(s.records, r)
		s.end = r.End
		log := s.streams[r.Stream]
		if log == nil {
			log = &streamLog{}
			s.streams[r.Stream] = log
		}
		if r.Revision == deletedStream {
			log.tombstone = r
		} else {
			log.events = append(log.events, r)
		}
	}
	s.end += l.Epoch
	if l.Lost > 0 {
		s.drop(l.Lost)
	}
	if l.Scavenge {
		s.scavengeNow()
	}
}

// drop takes the newest n records off the log.
func (s *store) drop(n int) {
	for _, r := range s.records[len(s.records)-n:] {
		log := s.streams[r.Stream]
		if log.tombstone == r {
			log.tombstone = nil
		} else {
			log.events = log.events[:len(log.events)-1]
		}
		if len(log.events) == 0 && log.tombstone == nil {
			delete(s.streams, r.Stream)
		}
	}
	s.records = s.records[:len(s.records)-n]
	s.end = 0
	if n := len(s.records); n > 0 {
		s.end = s.records[n-1].End
	}
}

// commit makes records of events, saves and applies them. Readers see them at
// once unless somebody holds the index.
func (s *store) commit(stream string, current int64, events []proposed) ([]*record, error) {
	records := make([]*record, len(events))
	end, created := s.end, s.now().UnixNano()/100
	for i, e := range events {
		size := int64(recordOverhead + len(stream) + len(e.kind) + len(e.data) + len(e.meta))
		records[i] = &record{
			Pos: end, End: end + size, Stream: stream, Revision: current + 1 + int64(i),
			ID: e.id, Type: e.kind, JSON: e.json, Created: created, Data: e.data, Meta: e.meta,
		}
		if e.tombstone {
			records[i].Revision = deletedStream
		}
		end += size
	}
	l := line{Records: records}
	if err := s.save(l); err != nil {
		return nil, err
	}
	s.apply(l)
	for _, r := range records {
		s.cache.put(r.ID, place{stream, r.Revision})
	}
	s.index()
	return records, nil
}

func (s *store) index() {
	if s.holds == 0 && s.indexed != len(s.records) {
		s.indexed = len(s.records)
		s.wake()
	}
}

// hold keeps what is written from now on out of the readers' sight until the
// returned function is called. The caller holds the lock; release takes it.
func (s *store) hold() (release func()) {
	s.holds++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.holds--
		s.index()
	})
}

// started notes that a node began to write: its log grows by records that are
// no events, and its cache of ids is empty.
func (s *store) started() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache.clear()
	l := line{Epoch: epochRecordSize}
	if err := s.save(l); err != nil {
		return err
	}
	s.apply(l)
	return nil
}

// loseUnindexed drops what no reader has seen, and says how much it was.
func (s *store) loseUnindexed() (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.records) - s.indexed
	if n == 0 {
		return 0, nil
	}
	l := line{Lost: n}
	if err := s.save(l); err != nil {
		return 0, err
	}
	s.apply(l)
	s.cache.clear()
	s.wake()
	return n, nil
}

func (s *store) scavenge() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := line{Scavenge: true}
	if err := s.save(l); err != nil {
		return err
	}
	s.apply(l)
	return nil
}

// scavengeNow takes out of the log what metadata lets no reader of a stream
// see: behind $tb and $maxCount, and all of a deleted stream but its tombstone.
func (s *store) scavengeNow() {
	v := s.writer()
	for _, name := range slices.Sorted(maps.Keys(s.streams)) {
		log := s.streams[name]
		lowest := v.lowest(name)
		for _, r := range log.events {
			if log.tombstone != nil || r.Revision < lowest && r.Revision != log.last() {
				s.scavenged[r] = true
			}
		}
	}
}

// wipe empties the log for good.
func (s *store) wipe() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	if s.file == nil {
		return nil
	}
	return s.file.Truncate(0)
}

func (s *store) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}

// all returns every record that is indexed, scavenged or not.
func (s *store) all() []*record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.records[:s.indexed])
}

func (l *streamLog) last() int64 {
	if l.tombstone != nil {
		return deletedStream
	}
	return int64(len(l.events)) - 1
}
