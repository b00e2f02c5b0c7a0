package kurrentdbtest

import (
	"encoding/json"
	"strings"
	"time"
)

// streamMetadata is what the newest event of a stream's metastream says.
type streamMetadata struct {
	MaxCount       *int64         `json:"$maxCount"`
	MaxAge         *int64         `json:"$maxAge"` // seconds
	TruncateBefore *int64         `json:"$tb"`
	ACL            *accessControl `json:"$acl"`
}

func isMetastream(stream string) bool { return strings.HasPrefix(stream, "$$") }

func metastreamOf(stream string) string { return "$$" + stream }

// metadata of a metastream is fixed: only its newest event is seen. Metadata
// that cannot be decoded counts as none.
func (v view) metadata(stream string) streamMetadata {
	if isMetastream(stream) {
		one := int64(1)
		return streamMetadata{MaxCount: &one}
	}
	raw := v.rawMetadata(stream)
	var m streamMetadata
	if raw == nil || json.Unmarshal(raw.Data, &m) != nil {
		return streamMetadata{}
	}
	return m
}

func (v view) rawMetadata(stream string) *record {
	meta := metastreamOf(stream)
	return v.event(meta, v.last(meta))
}

func (v view) softDeleted(stream string) bool {
	tb := v.metadata(stream).TruncateBefore
	return tb != nil && *tb == deletedStream
}

// lowest is the revision of the oldest event that metadata lets readers see.
func (v view) lowest(stream string) int64 {
	m := v.metadata(stream)
	var lowest int64
	if m.MaxCount != nil && *m.MaxCount > 0 {
		lowest = max(lowest, v.last(stream)-*m.MaxCount+1)
	}
	if m.TruncateBefore != nil {
		lowest = max(lowest, *m.TruncateBefore)
	}
	return lowest
}

// expired reports whether $maxAge hides the record.
func (m streamMetadata) expired(r *record, now time.Time) bool {
	if m.MaxAge == nil || *m.MaxAge <= 0 {
		return false
	}
	return r.Created < now.Add(-time.Duration(*m.MaxAge)*time.Second).UnixNano()/100
}
