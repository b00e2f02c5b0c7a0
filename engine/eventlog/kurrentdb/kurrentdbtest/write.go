package kurrentdbtest

import (
	"encoding/json"

	"github.com/google/uuid"
)

// proposed is an event that somebody wants to write.
type proposed struct {
	id         uuid.UUID
	kind       string
	json       bool
	data, meta []byte
	tombstone  bool
}

// written is what became of a write.
type written struct {
	verdict
	last    int64   // revision of the newest event written
	pos     int64   // its position
	newest  *record // nil when nothing was written
	release func()  // lets readers see it, when the write was to be held back
}

// write checks and commits an append as StorageWriterService does. With held it
// keeps the index back from these events on until release is called.
func (s *store) write(stream string, expected int64, events []proposed, held bool) (written, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]uuid.UUID, len(events))
	for i, e := range events {
		ids[i] = e.id
	}
	w := written{verdict: s.checkCommit(stream, expected, ids)}
	if w.decision != commitOK {
		return w, nil
	}
	w.last, w.pos = w.current, s.end
	if len(events) == 0 {
		return w, nil
	}
	undelete := isMetastream(stream) && s.writer().softDeleted(stream[2:])
	if held {
		w.release = s.hold()
	}
	records, err := s.commit(stream, w.current, events)
	if err != nil {
		s.unhold(w.release)
		return w, err
	}
	w.newest = records[len(records)-1]
	w.last, w.pos = w.newest.Revision, w.newest.Pos
	switch {
	case w.softDeleted:
		err = s.undelete(stream, w.current+1)
	case undelete:
		err = s.undelete(stream[2:], s.writer().last(stream[2:])+1)
	}
	return w, err
}

// unhold gives a hold back under the lock.
func (s *store) unhold(release func()) {
	if release != nil {
		s.mu.Unlock()
		release()
		s.mu.Lock()
	}
}

// undelete makes a soft-deleted stream readable from a revision on.
func (s *store) undelete(stream string, from int64) error {
	v := s.writer()
	fields := map[string]any{}
	if raw := v.rawMetadata(stream); raw == nil || json.Unmarshal(raw.Data, &fields) != nil {
		return nil // as the server: it leaves what it cannot read
	}
	fields["$tb"] = from
	return s.writeMetadata(stream, fields)
}

func (s *store) writeMetadata(stream string, fields map[string]any) error {
	data, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	meta := metastreamOf(stream)
	_, err = s.commit(meta, s.writer().last(meta), []proposed{{id: uuid.New(), kind: metadataType, json: true, data: data}})
	return err
}

// remove deletes a stream: with hard for good by a tombstone, else softly by
// the metadata {"$tb": 9223372036854775807}.
func (s *store) remove(stream string, expected int64, hard bool) (written, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := uuid.New()
	w := written{verdict: s.checkCommit(stream, expected, []uuid.UUID{id})}
	if w.decision != commitOK {
		return w, nil
	}
	v := s.writer()
	var err error
	switch {
	case hard:
		_, err = s.commit(stream, w.current, []proposed{{id: id, kind: tombstoneType, tombstone: true}})
	case v.last(stream) < 0 && v.last(metastreamOf(stream)) < 0:
		w.decision = wrongExpectedVersion
		return w, nil
	default:
		err = s.writeMetadata(stream, map[string]any{"$tb": int64(deletedStream)})
	}
	if err != nil {
		return w, err
	}
	w.newest = s.records[len(s.records)-1]
	w.pos = w.newest.Pos
	return w, nil
}

// addSystemEvent writes what the server writes by itself: its own statistics,
// which $all shows and a filter hides.
func (s *store) addSystemEvent(stream, kind, data string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.commit(stream, s.writer().last(stream), []proposed{{id: uuid.New(), kind: kind, json: true, data: []byte(data)}})
	return err
}
