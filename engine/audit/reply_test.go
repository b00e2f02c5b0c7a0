package audit_test

import (
	"maps"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/job"
)

// write appends events to any stream.
func (s *story) write(stream string, events ...job.Event) {
	s.t.Helper()
	for _, e := range events {
		kind, data, err := job.Encode(e)
		if err != nil {
			s.t.Fatal(err)
		}
		s.append(stream, kind, data)
	}
}

// claimed is the claim of the reply about a job.
func claimed(id int64) job.ReplyClaimed {
	return job.ReplyClaimed{Key: key(id), Worker: "worker", Outcome: job.LeadMade, Until: began.Add(time.Hour)}
}

// reply is the reply about a job that is done.
func (s *story) reply(id int64, endings ...job.Event) {
	s.t.Helper()
	s.write(key(id).ReplyStream(), append([]job.Event{claimed(id)}, endings...)...)
}

func TestRepliesAndDropsAreCounted(t *testing.T) {
	s := newStory(t)
	for id := range int64(6) {
		s.done(id, "", "L-"+string(rune('0'+id)))
	}
	s.reply(0, job.ReplySent{MessageID: 7})
	s.reply(1, job.ReplySent{MessageID: 8})
	s.reply(2, job.ReplyRefused{Reason: "blocked"})
	s.reply(3, job.ReplyUnknown{Reason: "cut"})
	s.reply(4)
	s.write(job.BotStream(1), job.PendingUpdatesDropped{Bot: 1, Count: 5, By: "ann", Reason: "spam"}, job.PendingUpdatesDropped{Bot: 1, Count: 2, By: "ann", Reason: "again"})
	s.write(job.BotStream(2), job.PendingUpdatesDropped{Bot: 2, Count: 0, By: "ann", Reason: "none there"})
	r := s.verify()
	want(t, r)
	replies := map[job.ReplyPhase]int{job.ReplyIsSent: 2, job.ReplyIsRefused: 1, job.ReplyIsUnknown: 1, job.ReplyIsClaimed: 1}
	if !maps.Equal(r.Replies, replies) || r.Drops != 3 || r.Dropped != 7 {
		t.Errorf("counted %v, %d updates dropped in %d commands", r.Replies, r.Dropped, r.Drops)
	}
}

func TestBrokenStreamBesideTheJobsIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		story func(s *story)
		want  [3]string
	}{
		"a second claim": {func(s *story) { s.reply(99, claimed(99)) },
			[3]string{"illegal", "reply-1-99", "revision 1: ReplyClaimed is not allowed on a reply that is claimed"}},
		"sent again": {func(s *story) { s.reply(99, job.ReplyUnknown{Reason: "cut"}, job.ReplySent{MessageID: 7}) },
			[3]string{"illegal", "reply-1-99", "revision 2: ReplySent is not allowed on a reply that is unknown"}},
		"sent without a claim": {func(s *story) { s.write("reply-1-99", job.ReplySent{MessageID: 7}) },
			[3]string{"illegal", "reply-1-99", "ReplySent is not allowed before a claim"}},
		"an event of a job": {func(s *story) { s.reply(99, job.LeadAbsent{How: job.ByLookup}) },
			[3]string{"illegal", "reply-1-99", "LeadAbsent is no event of a reply"}},
		"about another job": {func(s *story) { s.write("reply-1-99", claimed(98)) },
			[3]string{"illegal", "reply-1-99", "holds the reply about telegram/1/98"}},
		"about no job": {func(s *story) { s.reply(50) },
			[3]string{"illegal", "reply-1-50", "is about telegram/1/50, which does not exist"}},
		"undecodable": {func(s *story) { s.append("reply-1-99", "ReplyClaimed.v9", nil) },
			[3]string{"undecodable", "reply-1-99", "revision 0"}},
		"a bot's event on another bot's stream": {func(s *story) { s.write("bot-2", job.PendingUpdatesDropped{Bot: 1, Count: 1}) },
			[3]string{"illegal", "bot-2", "PendingUpdatesDropped is not about this bot"}},
		"undecodable, of a chat": {func(s *story) { s.append("chat-1--5", "ChatMigrated.v9", nil) },
			[3]string{"undecodable", "chat-1--5", "revision 0"}},
		"a job's event on a chat's stream": {func(s *story) { s.write("chat-1--5", job.LeadAbsent{}) },
			[3]string{"illegal", "chat-1--5", "LeadAbsent is no event of this stream"}},
		"a chat's event on a series' stream": {func(s *story) {
			s.write("series-1-a-5-6", job.SeriesJoined{Job: key(99), Opened: key(99), SentAt: began}, job.ChatMigrated{Bot: 1, From: -5, To: -6})
		},
			[3]string{"illegal", "series-1-a-5-6", "revision 1: ChatMigrated is no event of this stream"}},
		"a job's event on a bot's stream": {func(s *story) { s.write("bot-2", job.LeadAbsent{}) },
			[3]string{"illegal", "bot-2", "LeadAbsent is not about this bot"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.done(99, "", "L-99")
			c.story(s)
			want(t, s.verify(), c.want)
		})
	}
}
