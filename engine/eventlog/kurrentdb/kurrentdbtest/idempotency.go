package kurrentdbtest

import (
	"github.com/google/uuid"
)

// What a caller may expect of a stream, as the server's own numbers.
const (
	noStream     int64 = -1
	anyRevision  int64 = -2
	streamExists int64 = -4
)

// decision is what the writer makes of an append.
type decision int

const (
	commitOK decision = iota
	wrongExpectedVersion
	streamDeleted
	idempotent         // all of it is there already
	idempotentNotReady // all of it is there, but not indexed yet
)

// verdict is a decision and what its answer needs.
type verdict struct {
	decision    decision
	current     int64 // revision of the stream's newest event, noStream if it has none
	last        int64 // idempotent: revision of the newest of the events
	position    int64 // idempotent: of the newest of the events, -1 when readers cannot see it
	softDeleted bool
}

// checkCommit decides about an append from the ids of its events alone, never
// from their content. It is IndexWriter.CheckCommit; the cases are in doc.go.
func (s *store) checkCommit(stream string, expected int64, ids []uuid.UUID) verdict {
	v := s.writer()
	current := v.last(stream)
	wrong := verdict{decision: wrongExpectedVersion, current: current}
	if current == deletedStream {
		return verdict{decision: streamDeleted, current: current}
	}
	if expected == streamExists {
		if v.softDeleted(stream) {
			return verdict{decision: streamDeleted, current: current}
		}
		if current < 0 && v.last(metastreamOf(stream)) < 0 {
			return wrong
		}
	}
	ok := verdict{decision: commitOK, current: current, softDeleted: v.softDeleted(stream)}
	switch {
	case expected == anyRevision || expected == streamExists:
		return s.checkCached(stream, ids, ok, wrong)
	case expected < current:
		return s.checkBehindTail(stream, expected, ids, ok, wrong)
	case expected > current:
		return wrong
	}
	return ok // at the tail: ids are not looked at
}

// checkCached knows a repeat only by the bounded cache of recent ids.
func (s *store) checkCached(stream string, ids []uuid.UUID, ok, wrong verdict) verdict {
	var last int64
	for i, id := range ids {
		p, known := s.cache.get(id)
		if !known || p.stream != stream {
			if i == 0 {
				return ok
			}
			return wrong // the server's CorruptedIdempotency
		}
		last = p.revision
	}
	if len(ids) == 0 {
		return ok
	}
	return s.repeated(stream, ok.current, last)
}

// checkBehindTail compares the ids with those that follow the expected
// revision.
func (s *store) checkBehindTail(stream string, expected int64, ids []uuid.UUID, ok, wrong verdict) verdict {
	reader := s.reader(0)
	revision := expected
	for i, id := range ids {
		revision++
		if p, known := s.cache.get(id); known && p == (place{stream, revision}) {
			continue
		}
		if r := reader.event(stream, revision); r != nil && r.ID == id {
			continue
		}
		if i == 0 && expected == noStream && ok.softDeleted {
			return ok
		}
		return wrong // in the middle: the server's CorruptedIdempotency
	}
	if len(ids) == 0 {
		return wrong
	}
	return s.repeated(stream, ok.current, revision)
}

func (s *store) repeated(stream string, current, last int64) verdict {
	v := verdict{decision: idempotent, current: current, last: last, position: -1}
	reader := s.reader(0)
	if reader.last(stream) < last {
		v.decision = idempotentNotReady
	}
	if r := reader.visible(stream, last); r != nil {
		v.position = r.Pos
	}
	return v
}

// visible finds a record that a reader of the stream would be given.
func (v view) visible(stream string, revision int64) *record {
	if v.last(stream) == deletedStream || revision < v.lowest(stream) {
		return nil
	}
	r := v.event(stream, revision)
	if r == nil || v.metadata(stream).expired(r, v.s.now()) {
		return nil
	}
	return r
}

// place is where an event with some id is.
type place struct {
	stream   string
	revision int64
}

// idCache remembers the places of recently written ids, up to a number of
// bytes. An id that comes again keeps its first place. It is BoundedCache as
// IndexWriter uses it.
type idCache struct {
	limit, size int64
	places      map[uuid.UUID]place
	queue       []uuid.UUID
}

func newIDCache(limit int64) *idCache {
	c := &idCache{limit: limit}
	c.clear()
	return c
}

func (c *idCache) clear() { c.size, c.places, c.queue = 0, map[uuid.UUID]place{}, nil }

// cost is what an entry counts for, in bytes: 16 + 4 + a pointer + the name in
// UTF-16.
func (p place) cost() int64 { return 28 + 2*int64(len(p.stream)) }

func (c *idCache) put(id uuid.UUID, p place) {
	for c.size > c.limit && len(c.queue) > 0 {
		oldest := c.queue[0]
		c.queue = c.queue[1:]
		if old, there := c.places[oldest]; there {
			c.size -= old.cost()
			delete(c.places, oldest)
		}
	}
	c.size += p.cost()
	c.queue = append(c.queue, id)
	if _, there := c.places[id]; !there {
		c.places[id] = p
	}
}

func (c *idCache) get(id uuid.UUID) (place, bool) {
	p, ok := c.places[id]
	return p, ok
}
