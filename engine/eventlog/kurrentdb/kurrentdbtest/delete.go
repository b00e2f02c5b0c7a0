package kurrentdbtest

import (
	"context"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
)

// Delete makes a stream unreadable until somebody appends to it again.
func (s *Server) Delete(ctx context.Context, req *streams.DeleteReq) (*streams.DeleteResp, error) {
	o := req.GetOptions()
	var expected int64
	switch e := o.GetExpectedStreamRevision().(type) {
	case *streams.DeleteReq_Options_Revision:
		var err error
		if expected, err = revisionOf(e.Revision); err != nil {
			return nil, err
		}
	case *streams.DeleteReq_Options_NoStream:
		expected = noStream
	case *streams.DeleteReq_Options_Any:
		expected = anyRevision
	case *streams.DeleteReq_Options_StreamExists:
		expected = streamExists
	default:
		return nil, errNoExpectation
	}
	pos, err := s.remove(ctx, "Delete", o.GetStreamIdentifier(), expected, false)
	if err != nil {
		return nil, withTrailers(ctx, err)
	}
	position := &streams.DeleteResp_Position{CommitPosition: pos, PreparePosition: pos}
	return &streams.DeleteResp{PositionOption: &streams.DeleteResp_Position_{Position: position}}, nil
}

// Tombstone deletes a stream and its name for good.
func (s *Server) Tombstone(ctx context.Context, req *streams.TombstoneReq) (*streams.TombstoneResp, error) {
	o := req.GetOptions()
	var expected int64
	switch e := o.GetExpectedStreamRevision().(type) {
	case *streams.TombstoneReq_Options_Revision:
		var err error
		if expected, err = revisionOf(e.Revision); err != nil {
			return nil, err
		}
	case *streams.TombstoneReq_Options_NoStream:
		expected = noStream
	case *streams.TombstoneReq_Options_Any:
		expected = anyRevision
	case *streams.TombstoneReq_Options_StreamExists:
		expected = streamExists
	default:
		return nil, errNoExpectation
	}
	pos, err := s.remove(ctx, "Tombstone", o.GetStreamIdentifier(), expected, true)
	if err != nil {
		return nil, withTrailers(ctx, err)
	}
	position := &streams.TombstoneResp_Position{CommitPosition: pos, PreparePosition: pos}
	return &streams.TombstoneResp{PositionOption: &streams.TombstoneResp_Position_{Position: position}}, nil
}

func (s *Server) remove(ctx context.Context, method string, id *shared.StreamIdentifier, expected int64, hard bool) (uint64, error) {
	name := string(id.GetStreamName())
	if err := s.enter(ctx, method, name, access{stream: name, write: true}); err != nil {
		return 0, err
	}
	w, err := s.store.remove(name, expected, hard)
	if err != nil {
		return 0, err
	}
	switch w.decision {
	case wrongExpectedVersion:
		return 0, errWrongVersion("Delete", name, expected, w.current)
	case streamDeleted:
		return 0, errStreamDeleted(name)
	}
	if err := s.store.waitIndexed(ctx, w.newest, s.opts.CommitTimeout); err != nil {
		return 0, err
	}
	return uint64(w.pos), nil
}
