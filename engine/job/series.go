package job

import (
	"strconv"
	"time"
)

// Series asks that updates of one person in one chat are one lead if they were sent
// shortly after each other, as a row of forwarded messages is. The window decides who
// joins; what they share from then on is the event key of the update that opened it.
type Series struct {
	Name   string        // of the rule
	Window time.Duration // from the update that opened it on, and before it; 0: no series
	SentAt time.Time     // the update's own time, as Telegram gives it
}

// SeriesJoined: the job belongs to the series that the job Opened began.
type SeriesJoined struct {
	Job    Key       `json:"job"`
	Opened Key       `json:"opened"`
	SentAt time.Time `json:"sent_at"`
}

// Name is the event's name.
func (SeriesJoined) Name() string { return "SeriesJoined" }

// SeriesStream is the stream on which a person's series in a chat are told. The name is
// last: it may have a hyphen at its end, and a chat's number one at its start.
func SeriesStream(bot int64, name string, chat, user int64) string {
	return SeriesStreams + strconv.FormatInt(bot, 10) + "-" + strconv.FormatInt(chat, 10) + "-" +
		strconv.FormatInt(user, 10) + "-" + name
}

// Join decides to which series the job belongs, and whether that is recorded already.
func (s Series) Join(history []SeriesJoined, self Key) (joined SeriesJoined, recorded bool) {
	joined = SeriesJoined{Job: self, Opened: self, SentAt: s.SentAt}
	for _, h := range history {
		if h.Job == self {
			return h, true
		}
		if h.Job == h.Opened && s.SentAt.Sub(h.SentAt).Abs() <= s.Window {
			joined.Opened = h.Opened
		}
	}
	return joined, false
}

// BusinessKey is the business key of everything in the series.
func (j SeriesJoined) BusinessKey() string {
	return businessKey(j.Opened.Bot, "series", j.Opened.String())
}
