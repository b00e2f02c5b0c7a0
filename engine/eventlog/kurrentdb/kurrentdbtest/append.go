package kurrentdbtest

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"time"
	"unicode/utf16"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
)

// Append is the call of the protocol: one message of options, then the events.
func (s *Server) Append(stream streams.Streams_AppendServer) error {
	ctx := stream.Context()
	resp, err := s.append(ctx, stream)
	if err != nil {
		return withTrailers(ctx, err)
	}
	return stream.SendAndClose(resp)
}

func (s *Server) append(ctx context.Context, stream streams.Streams_AppendServer) (*streams.AppendResp, error) {
	first, err := stream.Recv()
	if err != nil || first.GetOptions() == nil {
		return nil, errHandler
	}
	options := first.GetOptions()
	name := string(options.GetStreamIdentifier().GetStreamName())
	expected, err := expectedOf(options)
	if err != nil {
		return nil, err
	}
	if err := s.enter(ctx, "Append", name, access{stream: name, write: true}); err != nil {
		return nil, err
	}
	fault := s.faults.take(opAppend, name)
	if fault.Point == AppendDenied {
		return nil, errAccessDenied // before the events are read, so a client may fail to send them
	}
	events, err := s.receiveEvents(stream)
	if err != nil {
		return nil, err
	}
	if name == "" {
		return nil, errHandler
	}
	if err := s.beforeCommit(ctx, fault); err != nil {
		return nil, err
	}
	w, err := s.store.write(name, expected, events, fault.Point == AppendNotIndexed)
	if err != nil {
		return nil, err
	}
	if w.release != nil {
		s.later(fault.Delay, w.release)
	}
	switch fault.Point {
	case AppendLost:
		return nil, s.cut(ctx)
	case AppendLate: // whose clock ended first does not matter
		return nil, errDeadline
	}
	if err := s.sometimesWriteStats(); err != nil {
		return nil, err
	}
	return s.answerAppend(ctx, name, options, expected, w)
}

// beforeCommit meets the faults of an append that was received whole.
func (s *Server) beforeCommit(ctx context.Context, fault Fault) error {
	switch fault.Point {
	case AppendNotReady:
		return errNotReady
	case AppendNotLeader:
		if fault.Leader == "" {
			return errNotLeader(s.Address())
		}
		return errNotLeader(fault.Leader)
	case AppendSlow:
		if err := pause(context.WithoutCancel(ctx), fault.Delay); err != nil {
			return err
		}
	case AppendHang:
		return hang(ctx)
	case AppendCut:
		return s.cut(ctx)
	case AppendTimeout:
		if err := pause(ctx, s.opts.CommitTimeout); err != nil {
			return err
		}
		return errCommitTimeout
	case AppendLate:
		<-ctx.Done()
		return pause(context.WithoutCancel(ctx), fault.Delay)
	}
	return ctx.Err() // as the writer, which drops what nobody waits for any more
}

// expectedOf reads the expected revision. The largest number there is means the
// same as no stream, as it does on the server.
func expectedOf(o *streams.AppendReq_Options) (int64, error) {
	switch e := o.GetExpectedStreamRevision().(type) {
	case *streams.AppendReq_Options_Revision:
		return revisionOf(e.Revision)
	case *streams.AppendReq_Options_NoStream:
		return noStream, nil
	case *streams.AppendReq_Options_Any:
		return anyRevision, nil
	case *streams.AppendReq_Options_StreamExists:
		return streamExists, nil
	}
	return 0, errNoExpectation
}

func revisionOf(n uint64) (int64, error) {
	revision, ok := fromWire(n)
	if !ok {
		return 0, errHandler
	}
	return revision, nil
}

func (s *Server) receiveEvents(stream streams.Streams_AppendServer) ([]proposed, error) {
	var events []proposed
	size := 0
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return nil, err
		}
		message := req.GetProposedMessage()
		if message == nil {
			return nil, errHandler
		}
		kind, ok := message.GetMetadata()["type"]
		if !ok {
			return nil, errMissingMetadata("type")
		}
		contentType, ok := message.GetMetadata()["content-type"]
		if !ok {
			return nil, errMissingMetadata("content-type")
		}
		size += len(message.GetData()) + len(message.GetCustomMetadata()) + 2*len(utf16.Encode([]rune(kind)))
		if size > s.opts.MaxAppendSize {
			return nil, errAppendTooLarge(s.opts.MaxAppendSize)
		}
		id, ok := idFrom(message.GetId())
		if !ok || id == uuid.Nil || kind == "" {
			return nil, errHandler
		}
		events = append(events, proposed{
			id: id, kind: kind, json: contentType == "application/json", data: message.GetData(), meta: message.GetCustomMetadata(),
		})
	}
}

func idFrom(id *shared.UUID) (uuid.UUID, bool) {
	switch v := id.GetValue().(type) {
	case *shared.UUID_String_:
		parsed, err := uuid.Parse(v.String_)
		return parsed, err == nil
	case *shared.UUID_Structured_:
		var parsed uuid.UUID
		binary.BigEndian.PutUint64(parsed[:8], uint64(v.Structured.GetMostSignificantBits()))
		binary.BigEndian.PutUint64(parsed[8:], uint64(v.Structured.GetLeastSignificantBits()))
		return parsed, true
	}
	return uuid.Nil, false
}

// answerAppend waits until the events are indexed, as the server's
// RequestManagerBase does.
func (s *Server) answerAppend(ctx context.Context, name string, options *streams.AppendReq_Options, expected int64, w written) (*streams.AppendResp, error) {
	switch w.decision {
	case wrongExpectedVersion:
		return wrongVersionResp(options, expected, w.current), nil
	case streamDeleted:
		return nil, errStreamDeleted(name)
	case idempotent:
		return successResp(w.verdict.last, w.verdict.position), nil
	case idempotentNotReady: // the writer drops it and nobody ever answers
		if err := pause(ctx, s.opts.CommitTimeout); err != nil {
			return nil, err
		}
		return nil, errCommitTimeout
	}
	if err := s.store.waitIndexed(ctx, w.newest, s.opts.CommitTimeout); err != nil {
		return nil, err
	}
	return successResp(w.last, w.pos), nil
}

// waitIndexed waits until readers see the record; nil is there already. It fails
// when the record gets lost before.
func (s *store) waitIndexed(ctx context.Context, rec *record, timeout time.Duration) error {
	if rec == nil {
		return nil
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		s.mu.Lock()
		changed, place := s.changed, s.writer().search(rec.Pos)
		there := place < len(s.records) && s.records[place] == rec
		indexed := place < s.indexed
		s.mu.Unlock()
		switch {
		case !there:
			return errNotReady
		case indexed:
			return nil
		}
		select {
		case <-changed:
		case <-timer.C:
			return errCommitTimeout
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func successResp(last, pos int64) *streams.AppendResp {
	success := &streams.AppendResp_Success{}
	if last == noStream {
		success.CurrentRevisionOption = &streams.AppendResp_Success_NoStream{NoStream: &shared.Empty{}}
	} else {
		success.CurrentRevisionOption = &streams.AppendResp_Success_CurrentRevision{CurrentRevision: uint64(last)}
	}
	if pos < 0 {
		success.PositionOption = &streams.AppendResp_Success_NoPosition{NoPosition: &shared.Empty{}}
	} else {
		success.PositionOption = &streams.AppendResp_Success_Position{
			Position: &streams.AppendResp_Position{CommitPosition: uint64(pos), PreparePosition: uint64(pos)},
		}
	}
	return &streams.AppendResp{Result: &streams.AppendResp_Success_{Success: success}}
}

func wrongVersionResp(options *streams.AppendReq_Options, expected, current int64) *streams.AppendResp {
	wrong := &streams.AppendResp_WrongExpectedVersion{}
	empty := &shared.Empty{}
	switch options.GetExpectedStreamRevision().(type) {
	case *streams.AppendReq_Options_Any:
		wrong.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedAny{ExpectedAny: empty}
		wrong.ExpectedRevisionOption_20_6_0 = &streams.AppendResp_WrongExpectedVersion_Any_20_6_0{Any_20_6_0: empty}
	case *streams.AppendReq_Options_StreamExists:
		wrong.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedStreamExists{ExpectedStreamExists: empty}
		wrong.ExpectedRevisionOption_20_6_0 = &streams.AppendResp_WrongExpectedVersion_StreamExists_20_6_0{StreamExists_20_6_0: empty}
	case *streams.AppendReq_Options_NoStream:
		wrong.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedNoStream{ExpectedNoStream: empty}
		wrong.ExpectedRevisionOption_20_6_0 = &streams.AppendResp_WrongExpectedVersion_ExpectedRevision_20_6_0{ExpectedRevision_20_6_0: ^uint64(0)}
	default:
		wrong.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedRevision{ExpectedRevision: uint64(expected)}
		wrong.ExpectedRevisionOption_20_6_0 = &streams.AppendResp_WrongExpectedVersion_ExpectedRevision_20_6_0{ExpectedRevision_20_6_0: uint64(expected)}
	}
	if current == noStream {
		wrong.CurrentRevisionOption = &streams.AppendResp_WrongExpectedVersion_CurrentNoStream{CurrentNoStream: empty}
		wrong.CurrentRevisionOption_20_6_0 = &streams.AppendResp_WrongExpectedVersion_NoStream_20_6_0{NoStream_20_6_0: empty}
	} else {
		wrong.CurrentRevisionOption = &streams.AppendResp_WrongExpectedVersion_CurrentRevision{CurrentRevision: uint64(current)}
		wrong.CurrentRevisionOption_20_6_0 = &streams.AppendResp_WrongExpectedVersion_CurrentRevision_20_6_0{CurrentRevision_20_6_0: uint64(current)}
	}
	return &streams.AppendResp{Result: &streams.AppendResp_WrongExpectedVersion_{WrongExpectedVersion: wrong}}
}
