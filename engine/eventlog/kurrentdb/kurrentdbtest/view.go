package kurrentdbtest

import (
	"math"
	"sort"
)

// view is what the writer or a reader sees of the log: its first n records. It
// is used under the store's lock.
type view struct {
	s     *store
	n     int
	limit int64 // records that start at or behind it are not seen
}

func (s *store) writer() view { return view{s, len(s.records), math.MaxInt64} }

// reader sees what is indexed, less the newest events that it lags behind.
func (s *store) reader(behind int) view {
	n := max(0, s.indexed-behind)
	if n == len(s.records) {
		return s.writer()
	}
	return view{s, n, s.records[n].Pos}
}

// last is the revision of the stream's newest event: noStream, or
// deletedStream behind a tombstone.
func (v view) last(stream string) int64 {
	log := v.s.streams[stream]
	if log == nil {
		return noStream
	}
	if log.tombstone != nil && log.tombstone.Pos < v.limit {
		return deletedStream
	}
	n := sort.Search(len(log.events), func(i int) bool { return log.events[i].Pos >= v.limit })
	return int64(n) - 1
}

// event finds a record by its revision, whatever metadata says.
func (v view) event(stream string, revision int64) *record {
	log := v.s.streams[stream]
	if log == nil || revision < 0 || revision >= int64(len(log.events)) {
		return nil
	}
	r := log.events[revision]
	if r.Pos >= v.limit || v.s.scavenged[r] {
		return nil
	}
	return r
}

// lastPosition is where the newest record starts.
func (v view) lastPosition() position {
	if v.n == 0 {
		return headOfLog
	}
	return v.s.records[v.n-1].at()
}

// search finds the first record that starts at or behind pos.
func (v view) search(pos int64) int {
	return sort.Search(v.n, func(i int) bool { return v.s.records[i].Pos >= pos })
}

// splits reports whether pos is in the middle of a record, where no read can
// start.
func (v view) splits(pos int64) bool {
	i := v.search(pos)
	return i > 0 && v.s.records[i-1].End > pos
}
