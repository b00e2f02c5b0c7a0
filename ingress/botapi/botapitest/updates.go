package botapitest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Lives of an update, in seconds.
const (
	lifeOfButton = 150
	lifeOfUpdate = 24 * 60 * 60
)

// leftOut are the kinds that an update has to be asked for by name.
var leftOut = []string{"chat_member", "message_reaction", "message_reaction_count"}

// Push queues an update of the kind, whose member is content, a JSON value. It
// returns its id; 0 for a kind that is not allowed.
func (s *Server) Push(kind string, chat int64, content string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.allows(kind) {
		return 0
	}
	id := s.next
	s.push(id, chat, fmt.Sprintf("{\"update_id\":%d,\n%q:%s}", id, kind, content), kind)
	return id
}

// PushRaw queues the body as it is, with that id.
func (s *Server) PushRaw(id, chat int64, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.push(id, chat, body, "")
}

// RestartAt makes id the next update's, as after a week without any.
func (s *Server) RestartAt(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = id
}

func (s *Server) push(id, chat int64, body, kind string) {
	life := int64(lifeOfUpdate)
	if kind == "callback_query" {
		life = lifeOfButton
	}
	u := queued{id, chat, body, time.Now().Add(s.seconds(life))}
	s.queue = append(s.queue, u)
	s.next = id + 1
	close(s.arrived)
	s.arrived = make(chan struct{})
	if s.hook != nil {
		s.hook.take(u)
	}
}

func (s *Server) allows(kind string) bool {
	if s.allowed == nil {
		return !slices.Contains(leftOut, kind)
	}
	return slices.Contains(s.allowed, kind)
}

// allow takes over allowed_updates; without any, the earlier ones stay.
func (s *Server) allow(kinds []string) {
	if len(kinds) == 0 {
		return
	}
	s.allowed = nil
	for _, kind := range kinds {
		if !slices.Contains(s.options.Unknown, kind) {
			s.allowed = append(s.allowed, kind)
		}
	}
}

// Pending are the ids of the updates that wait, the oldest first.
func (s *Server) Pending() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := []int64{}
	for _, u := range s.queue {
		ids = append(ids, u.id)
	}
	return ids
}

// Offsets are those with which updates were fetched.
func (s *Server) Offsets() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.offsets)
}

// Calls is how often a method was called.
func (s *Server) Calls(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// AnsweredButtons are the callback queries that were answered, by a call or in the
// answer of a webhook.
func (s *Server) AnsweredButtons() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.buttons)
}

// Fail makes the next calls of a method fail, one fault each.
func (s *Server) Fail(method string, faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[method] = append(s.faults[method], faults...)
}

const webhookIsActive = "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"

func (s *Server) getUpdates(ctx context.Context, a arguments) result {
	s.mu.Lock()
	s.offsets = append(s.offsets, a.Offset)
	if s.hook != nil {
		return s.conflict(ctx, webhookIsActive)
	}
	s.allow(a.AllowedUpdates)
	limit := min(max(cmp.Or(a.Limit, 100), 1), 100)
	if a.Offset == s.last.offset && time.Since(s.last.at) < s.options.Second/2 {
		limit = 1 // for one who fetches the same again and again
	}
	s.last.offset, s.last.at = a.Offset, time.Now()
	s.forget(a.Offset)
	if len(s.queue) > 0 || a.Timeout == 0 {
		defer s.mu.Unlock()
		return s.batch(limit)
	}
	if s.poll != nil {
		s.poll <- "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
	}
	mine := make(chan string, 1)
	s.poll = mine
	return s.wait(ctx, mine, a.Offset, limit, s.seconds(min(a.Timeout, 50)))
}

// wait is entered with the lock held, and leaves without it.
func (s *Server) wait(ctx context.Context, mine chan string, offset int64, limit int, atMost time.Duration) result {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	arrived := s.arrived
	s.mu.Unlock()
	reason := ""
	select {
	case <-arrived:
	case <-timer.C:
	case <-ctx.Done():
	case reason = <-mine:
	}
	s.mu.Lock()
	if reason != "" {
		return s.conflict(ctx, reason)
	}
	defer s.mu.Unlock()
	if s.poll == mine {
		s.poll = nil
	}
	s.forget(offset) // again: it may be above what came meanwhile
	return s.batch(limit)
}

// conflict answers 409, the second within three seconds three seconds late. It is
// entered with the lock held, and leaves without it.
func (s *Server) conflict(ctx context.Context, reason string) result {
	var late time.Duration
	if time.Now().Before(s.conflictAt) {
		late = s.seconds(3)
	} else {
		s.conflictAt = time.Now().Add(s.seconds(3))
	}
	s.mu.Unlock()
	pause(ctx, late)
	return refusal(http.StatusConflict, reason)
}

// forget drops what the offset confirms.
func (s *Server) forget(offset int64) {
	switch {
	case offset < 0: // all but the last -offset
		s.queue = s.queue[max(0, len(s.queue)+int(offset)):]
	case offset > 0 && offset <= s.next+10:
		s.queue = slices.DeleteFunc(s.queue, func(u queued) bool { return u.id < offset })
	}
}

func (s *Server) batch(limit int) result {
	var bodies []string
	for _, u := range s.queue[:min(limit, len(s.queue))] {
		bodies = append(bodies, u.body)
	}
	return result{value: []byte(strings.Join(bodies, ","))}
}

func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
