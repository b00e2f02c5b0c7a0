package kurrentdbtest

import (
	"math"
	"slices"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
)

// liveBuffer is how many messages the server keeps for a subscription that is
// live; of more it drops the oldest and lets the subscription catch up.
const liveBuffer = 32

// subscribe confirms, then catches up and is live in turns until the call ends.
func (r *reader) subscribe() error {
	switch r.fault.Point {
	case SubscribeUnavailable:
		return r.fault.status()
	case SubscribeUnconfirmed:
		return hang(r.stream.Context())
	}
	if r.backwards() {
		return errInvalidArgument("the combination is invalid: a subscription goes forwards")
	}
	_, filtered := r.options.GetFilterOption().(*streams.ReadReq_Options_Filter)
	switch {
	case r.options.GetStream() != nil && !filtered:
		return r.subscribeStream()
	case r.options.GetAll() != nil:
		return r.subscribeAll()
	}
	return errInvalidArgument("the combination is invalid: a stream cannot be filtered")
}

func (r *reader) confirm() error {
	err := r.send(&streams.ReadResp{Content: &streams.ReadResp_Confirmation{
		Confirmation: &streams.ReadResp_SubscriptionConfirmation{SubscriptionId: uuid.NewString()},
	}})
	if err != nil {
		return err
	}
	return r.biteNow()
}

func (r *reader) caughtUp() error {
	return r.send(&streams.ReadResp{Content: &streams.ReadResp_CaughtUp_{CaughtUp: &streams.ReadResp_CaughtUp{}}})
}

func (r *reader) fellBehind() error {
	if !r.server.opts.FellBehind {
		return nil
	}
	return r.send(&streams.ReadResp{Content: &streams.ReadResp_FellBehind_{FellBehind: &streams.ReadResp_FellBehind{}}})
}

// allSubscription is a subscription to $all: Enumerator.AllSubscription, and
// with interval > 0 Enumerator.AllSubscriptionFiltered.
type allSubscription struct {
	*reader
	allow      filter
	window     int64
	interval   int64    // checkpoints are this many records apart; 0: there are none
	confirmed  int      // how many records there were when it was confirmed
	live       int      // the next record to look at when live
	checkpoint position // of the newest event or checkpoint sent
	announced  position // the newest checkpoint sent
}

func (r *reader) subscribeAll() error {
	s := &allSubscription{reader: r, allow: visibleInAll, announced: headOfLog}
	if o, filtered := r.options.GetFilterOption().(*streams.ReadReq_Options_Filter); filtered {
		var err error
		if s.allow, err = filterOf(o.Filter); err != nil {
			return err
		}
		if s.window, err = windowOf(o.Filter); err != nil {
			return err
		}
		s.interval = s.window * int64(o.Filter.GetCheckpointIntervalMultiplier())
		if s.interval == 0 {
			return errHandler
		}
	} else {
		s.window = math.MaxInt32
	}
	start, err := r.allStart()
	if err != nil {
		return err
	}
	var tail position
	r.look(func(v view) { tail, s.confirmed, s.live = v.lastPosition(), v.n, v.n })
	if err := r.confirm(); err != nil {
		return err
	}
	s.checkpoint = start
	switch r.options.GetAll().GetAllOption().(type) {
	case *streams.ReadReq_Options_AllOptions_Start:
		s.checkpoint = headOfLog
	default:
		if start == headOfLog { // the end, however it was named
			s.checkpoint = tail
		}
	}
	return s.run(tail)
}

func (s *allSubscription) run(tail position) error {
	if !s.checkpoint.less(tail) {
		if err := s.goLive(); err != nil {
			return err
		}
	}
	for {
		if err := s.catchUp(); err != nil {
			return err
		}
		if err := s.goLive(); err != nil {
			return err
		}
	}
}

func (s *allSubscription) sendEvent(rec *record) error {
	s.checkpoint = rec.at()
	return s.event(rec)
}

// sendCheckpoint never sends the same or an older one again, nor one before the
// first record.
func (s *allSubscription) sendCheckpoint() error {
	if s.interval == 0 || !s.announced.less(s.checkpoint) {
		return nil
	}
	s.announced = s.checkpoint
	return s.announce(s.checkpoint)
}

// catchUp reads pages up to the end of the log.
func (s *allSubscription) catchUp() error {
	pos := s.checkpoint
	var counted int64
	for {
		if pos == headOfLog {
			pos = position{}
		}
		var page allPage
		var ok bool
		s.look(func(v view) { page, ok = v.forwardsAll(pos, pageSize, s.window, s.allow) })
		if !ok {
			return errInvalidPosition
		}
		for _, rec := range page.records {
			if !s.checkpoint.less(rec.at()) {
				continue
			}
			if err := s.sendEvent(rec); err != nil {
				return err
			}
		}
		counted += page.considered
		if page.end || s.interval > 0 && counted >= s.interval {
			if s.checkpoint.less(page.current) && s.interval > 0 {
				s.checkpoint = page.current
			}
			if s.interval > 0 {
				counted %= s.interval
			}
			if err := s.sendCheckpoint(); err != nil {
				return err
			}
		}
		if page.end {
			return nil
		}
		pos = page.next
		if err := s.stream.Context().Err(); err != nil {
			return err
		}
	}
}

// liveItem is an event or a checkpoint that waits for a live subscription.
type liveItem struct {
	rec        *record
	checkpoint bool
	index      int // of the record in the log
}

// goLive sends what is new as it comes. It returns nil when the subscription
// fell behind.
func (s *allSubscription) goLive() error {
	if err := s.caughtUp(); err != nil {
		return err
	}
	for {
		items, dropped, changed := s.pending()
		for _, item := range items {
			if item.checkpoint && item.rec.at().less(s.checkpoint) || !item.checkpoint && !s.checkpoint.less(item.rec.at()) {
				dropped = false // it was sent already, so what was dropped before it was, too
				continue
			}
			if dropped {
				s.live = item.index + 1
				if err := s.fellBehind(); err != nil {
					return err
				}
				return s.sendCheckpoint()
			}
			if err := s.sendLive(item); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-s.stream.Context().Done():
			return s.stream.Context().Err()
		}
	}
}

func (s *allSubscription) sendLive(item liveItem) error {
	if !item.checkpoint {
		return s.sendEvent(item.rec)
	}
	s.checkpoint = item.rec.at()
	return s.sendCheckpoint()
}

// pending is what came since the subscription looked last, without the oldest
// if it is more than the server keeps.
func (s *allSubscription) pending() (items []liveItem, dropped bool, changed <-chan struct{}) {
	s.look(func(v view) {
		changed = v.s.changed
		for i := s.live; i < v.n; i++ {
			rec := v.s.records[i]
			if s.allow(rec) {
				items = append(items, liveItem{rec: rec, index: i})
			}
			if s.interval > 0 && int64(i-s.confirmed+1)%s.interval == 0 {
				items = append(items, liveItem{rec: rec, checkpoint: true, index: i})
			}
		}
		s.live = v.n
	})
	if len(items) > liveBuffer {
		return items[len(items)-liveBuffer:], true, changed
	}
	return items, false, changed
}

// subscribeStream is Enumerator.StreamSubscription.
func (r *reader) subscribeStream() error {
	start, err := r.streamStart()
	if err != nil {
		return err
	}
	var last int64
	r.look(func(v view) { last = v.last(r.name) })
	if last == deletedStream {
		return errStreamDeleted(r.name)
	}
	if err := r.confirm(); err != nil {
		return err
	}
	s := &streamSubscription{reader: r, checkpoint: start, confirmed: last}
	switch r.options.GetStream().GetRevisionOption().(type) {
	case *streams.ReadReq_Options_StreamOptions_Start:
		s.checkpoint = noStream
	default:
		if start < 0 { // the end, however it was named
			s.checkpoint = last
		}
	}
	if s.checkpoint >= last {
		if err := s.goLive(); err != nil {
			return err
		}
	}
	for {
		if err := s.catchUp(); err != nil {
			return err
		}
		if err := s.goLive(); err != nil {
			return err
		}
	}
}

type streamSubscription struct {
	*reader
	checkpoint int64 // revision of the newest event sent
	confirmed  int64 // revision of the newest event when it was confirmed
}

func (s *streamSubscription) sendEvent(rec *record) error {
	s.checkpoint = rec.Revision
	if err := s.event(rec); err != nil {
		return err
	}
	if rec.Type == tombstoneType {
		return errStreamDeleted(s.name)
	}
	return nil
}

func (s *streamSubscription) catchUp() error {
	from := s.checkpoint + 1
	for {
		var page streamPage
		s.look(func(v view) { page = v.forwards(s.name, from, pageSize) })
		switch {
		case page.deleted:
			return errStreamDeleted(s.name)
		case !page.found:
			return nil
		}
		for _, rec := range page.records {
			if err := s.sendEvent(rec); err != nil {
				return err
			}
		}
		if page.end {
			return nil
		}
		from = page.next
	}
}

// goLive sends what is new as it comes. It returns nil when the subscription
// fell behind.
func (s *streamSubscription) goLive() error {
	if err := s.caughtUp(); err != nil {
		return err
	}
	for {
		items, changed := s.pending()
		if len(items) > liveBuffer {
			return s.fellBehind()
		}
		for _, rec := range items {
			if err := s.sendEvent(rec); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-s.stream.Context().Done():
			return s.stream.Context().Err()
		}
	}
}

// pending is what came since the subscription looked last. What was there when
// it was confirmed is for catching up alone.
func (s *streamSubscription) pending() (items []*record, changed <-chan struct{}) {
	s.look(func(v view) {
		changed = v.s.changed
		last := v.last(s.name)
		if last == deletedStream {
			items = []*record{v.s.streams[s.name].tombstone}
			return
		}
		for revision := last; revision > max(s.checkpoint, s.confirmed); revision-- {
			if rec := v.event(s.name, revision); rec != nil {
				items = append(items, rec)
			}
		}
	})
	slices.Reverse(items)
	return items, changed
}
