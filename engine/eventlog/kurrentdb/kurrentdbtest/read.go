package kurrentdbtest

import (
	"encoding/binary"
	"math"
	"strconv"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
)

// Read is the call of the protocol for reads and for subscriptions.
func (s *Server) Read(req *streams.ReadReq, stream streams.Streams_ReadServer) error {
	ctx := stream.Context()
	o := req.GetOptions()
	_, subscribes := o.GetCountOption().(*streams.ReadReq_Options_Subscription)
	name := "$all"
	if one := o.GetStream(); one != nil {
		name = string(one.GetStreamIdentifier().GetStreamName())
	}
	method, op := "Read", opRead
	if subscribes {
		method, op = "Subscribe", opSubscribe
	}
	if o.GetUuidOption() == nil {
		return errInvalidArgument(" `uuidOption` is a required argument")
	}
	if err := s.enter(ctx, method, name, access{stream: name}); err != nil {
		return withTrailers(ctx, err)
	}
	r := &reader{
		server: s, stream: stream, options: o, name: name, fault: s.faults.take(op, name),
		texts: o.GetUuidOption().GetString_() != nil, compatibility: o.GetControlOption().GetCompatibility(),
	}
	var err error
	if subscribes {
		err = r.subscribe()
	} else {
		err = r.read()
	}
	return withTrailers(ctx, err)
}

// reader answers one call of Read.
type reader struct {
	server        *Server
	stream        streams.Streams_ReadServer
	options       *streams.ReadReq_Options
	name          string
	fault         Fault
	texts         bool   // ids are wanted as text
	compatibility uint32 // 1: the client knows messages about a stream's ends
	sent          int    // events
	bitten        bool   // a fault that happens once did
}

func (r *reader) read() error {
	if r.fault.Point == ReadStale && requiresLeader(r.stream.Context()) {
		return errNotLeader(r.server.Address())
	}
	if err := r.biteNow(); err != nil {
		return err
	}
	count, ok := r.options.GetCountOption().(*streams.ReadReq_Options_Count)
	if !ok {
		return errInvalidArgument("the combination is invalid: neither a count nor a subscription")
	}
	var err error
	_, filtered := r.options.GetFilterOption().(*streams.ReadReq_Options_Filter)
	switch {
	case r.options.GetStream() != nil && !filtered:
		err = r.readStream(count.Count)
	case r.options.GetAll() != nil:
		err = r.readAll(count.Count)
	default:
		return errInvalidArgument("the combination is invalid: a stream cannot be filtered")
	}
	if err != nil {
		return err
	}
	return r.biteAtEnd()
}

// look gives f what the call may see, under the store's lock.
func (r *reader) look(f func(view)) {
	behind := 0
	if r.fault.Point == ReadStale {
		behind = r.fault.Behind
	}
	r.server.store.mu.Lock()
	defer r.server.store.mu.Unlock()
	f(r.server.store.reader(behind))
}

func (r *reader) backwards() bool {
	return r.options.GetReadDirection() == streams.ReadReq_Options_Backwards
}

func (r *reader) readStream(count uint64) error {
	from, err := r.streamStart()
	if err != nil {
		return err
	}
	// The server cannot read pages of no events, nor forwards from the end.
	if count == 0 || from < 0 && !r.backwards() || r.name == "" {
		return errUnexpected("ReadStreamResult", "Error")
	}
	size := int64(min(pageSize, count))
	for first := true; ; first = false {
		var page streamPage
		r.look(func(v view) {
			if r.backwards() {
				page = v.backwards(r.name, from, size)
			} else {
				page = v.forwards(r.name, from, size)
			}
		})
		switch {
		case page.deleted:
			return errStreamDeleted(r.name)
		case !page.found:
			return r.send(&streams.ReadResp{Content: &streams.ReadResp_StreamNotFound_{StreamNotFound: &streams.ReadResp_StreamNotFound{
				StreamIdentifier: &shared.StreamIdentifier{StreamName: []byte(r.name)},
			}}})
		}
		if first && r.compatibility >= 1 && !r.backwards() && len(page.records) == 0 && page.next != from {
			if err := r.send(&streams.ReadResp{Content: &streams.ReadResp_FirstStreamPosition{FirstStreamPosition: uint64(page.next)}}); err != nil {
				return err
			}
		}
		if err := r.sendUpTo(count, page.records); err != nil {
			return err
		}
		if page.end || uint64(r.sent) >= count {
			if r.compatibility >= 1 {
				return r.send(&streams.ReadResp{Content: &streams.ReadResp_LastStreamPosition{LastStreamPosition: uint64(page.last)}})
			}
			return nil
		}
		from = page.next
	}
}

func (r *reader) streamStart() (int64, error) {
	switch o := r.options.GetStream().GetRevisionOption().(type) {
	case *streams.ReadReq_Options_StreamOptions_Revision:
		return revisionOf(o.Revision)
	case *streams.ReadReq_Options_StreamOptions_Start:
		return 0, nil
	case *streams.ReadReq_Options_StreamOptions_End:
		return -1, nil
	}
	return 0, errHandler
}

func (r *reader) readAll(count uint64) error {
	pos, err := r.allStart()
	if err != nil {
		return err
	}
	allow, window := filter(visibleInAll), int64(math.MaxInt32)
	if o, filtered := r.options.GetFilterOption().(*streams.ReadReq_Options_Filter); filtered {
		if allow, err = filterOf(o.Filter); err != nil {
			return err
		}
		if window, err = windowOf(o.Filter); err != nil {
			return err
		}
	}
	if count == 0 {
		return errUnexpected("ReadAllResult", "Error")
	}
	size := int(min(pageSize, count))
	for {
		var page allPage
		ok := true
		r.look(func(v view) {
			if pos == headOfLog {
				pos = position{v.s.end, v.s.end}
			}
			if r.backwards() {
				page, ok = v.backwardsAll(pos, size, window, allow)
			} else {
				page, ok = v.forwardsAll(pos, size, window, allow)
			}
		})
		if !ok {
			return errUnexpected("ReadAllResult", "InvalidPosition")
		}
		if err := r.sendUpTo(count, page.records); err != nil {
			return err
		}
		if page.end || uint64(r.sent) >= count {
			return nil
		}
		pos = page.next
	}
}

func (r *reader) allStart() (position, error) {
	switch o := r.options.GetAll().GetAllOption().(type) {
	case *streams.ReadReq_Options_AllOptions_Position:
		pos, ok := positionFromWire(o.Position.GetCommitPosition(), o.Position.GetPreparePosition())
		if !ok {
			return position{}, errHandler
		}
		return pos, nil
	case *streams.ReadReq_Options_AllOptions_Start:
		return position{}, nil
	case *streams.ReadReq_Options_AllOptions_End:
		return headOfLog, nil
	}
	return position{}, errHandler
}

func (r *reader) sendUpTo(count uint64, records []*record) error {
	for _, record := range records {
		if uint64(r.sent) >= count {
			return nil
		}
		if err := r.event(record); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) send(resp *streams.ReadResp) error { return r.stream.Send(resp) }

// event sends one event and lets the fault of the call happen before the next.
func (r *reader) event(rec *record) error {
	slow := r.fault.Point == ReadSlow || r.fault.Point == SubscribeSlow
	if slow && r.sent >= r.fault.After {
		if err := pause(r.stream.Context(), r.fault.Delay); err != nil {
			return err
		}
	}
	at := uint64(rec.Pos)
	kind := "application/octet-stream"
	if rec.JSON {
		kind = "application/json"
	}
	err := r.send(&streams.ReadResp{Content: &streams.ReadResp_Event{Event: &streams.ReadResp_ReadEvent{
		Position: &streams.ReadResp_ReadEvent_CommitPosition{CommitPosition: at},
		Event: &streams.ReadResp_ReadEvent_RecordedEvent{
			Id: idTo(rec.ID, r.texts), StreamIdentifier: &shared.StreamIdentifier{StreamName: []byte(rec.Stream)},
			StreamRevision: uint64(rec.Revision), CommitPosition: at, PreparePosition: at,
			Metadata: map[string]string{"type": rec.Type, "content-type": kind, "created": strconv.FormatInt(rec.Created, 10)},
			Data:     rec.Data, CustomMetadata: rec.Meta,
		},
	}}})
	if err != nil {
		return err
	}
	r.sent++
	return r.biteNow()
}

// biteNow lets the fault happen when enough events were sent.
func (r *reader) biteNow() error {
	if r.sent < r.fault.After || r.bitten {
		return nil
	}
	return r.bite()
}

// biteAtEnd lets a fault happen that waits for more events than there are.
func (r *reader) biteAtEnd() error {
	if r.bitten {
		return nil
	}
	return r.bite()
}

// delivery is how long a reset waits so that what was sent before can arrive.
const delivery = 20 * time.Millisecond

func (r *reader) bite() error {
	ctx := r.stream.Context()
	r.bitten = true
	switch r.fault.Point {
	case ReadCut, SubscribeCut:
		if err := pause(ctx, delivery); err != nil {
			return err
		}
		return r.server.cut(ctx)
	case ReadHang, SubscribeStall:
		return hang(ctx)
	case ReadUnavailable, SubscribeDrop:
		return r.fault.status()
	case SubscribeCheckpoint:
		return r.announce(headOfLog)
	}
	return nil
}

func (r *reader) announce(pos position) error {
	commit, prepare := pos.wire()
	return r.send(&streams.ReadResp{Content: &streams.ReadResp_Checkpoint_{
		Checkpoint: &streams.ReadResp_Checkpoint{CommitPosition: commit, PreparePosition: prepare},
	}})
}

func idTo(id uuid.UUID, text bool) *shared.UUID {
	if text {
		return &shared.UUID{Value: &shared.UUID_String_{String_: id.String()}}
	}
	return &shared.UUID{Value: &shared.UUID_Structured_{Structured: &shared.UUID_Structured{
		MostSignificantBits:  int64(binary.BigEndian.Uint64(id[:8])),
		LeastSignificantBits: int64(binary.BigEndian.Uint64(id[8:])),
	}}}
}
