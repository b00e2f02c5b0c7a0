package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/engine/rules"
)

// replyConfig has the text for each outcome; an empty one is not told.
type replyConfig struct {
	Done                string        `yaml:"done"`
	DeadLetter          string        `yaml:"dead_letter"`
	NeedsReconciliation string        `yaml:"needs_reconciliation"`
	Shared              string        `yaml:"shared"`
	NoEffect            string        `yaml:"no_effect"`
	Within              time.Duration `yaml:"within"`
}

func (r replyConfig) text(o job.ReplyOutcome) string {
	return map[job.ReplyOutcome]string{
		job.LeadMade: r.Done, job.GivenUp: r.DeadLetter, job.LeftToHuman: r.NeedsReconciliation,
		job.MadeElsewhere: r.Shared, job.NothingAsked: r.NoEffect,
	}[o]
}

// compileReplies makes a mistake in a text one of the file, with its line there.
func compileReplies(path string, data []byte, r replyConfig) (map[job.ReplyOutcome]*rules.Reply, error) {
	texts := map[job.ReplyOutcome]*rules.Reply{}
	for _, o := range job.ReplyOutcomes() {
		source := r.text(o)
		if strings.TrimSpace(source) == "" {
			continue
		}
		compiled, err := rules.NewReply(path, "reply", string(o), source)
		if err != nil {
			return nil, onLine(path, data, err)
		}
		texts[o] = compiled
	}
	return texts, nil
}

// onLine adds to a mistake in an expression its line in the file.
func onLine(path string, data []byte, err error) error {
	var wrong *rules.Error
	if !errors.As(err, &wrong) {
		return err
	}
	if line := lineOf(data, wrong.Path); line > 0 {
		wrong.Source = fmt.Sprintf("%s:%d", path, line)
	}
	return mistake("%v", wrong)
}

// checkReply demands what replies need: a time, the bots, and their tokens.
func (c *config) checkReply() error {
	if len(c.replies) == 0 {
		return nil
	}
	if c.Reply.Within <= 0 {
		return wrong("reply.within", "%s is no age of an outcome; give one such as 10m", c.Reply.Within)
	}
	if c.Role == roleIngress {
		return nil // the workers reply
	}
	if len(c.replyBots) == 0 {
		for _, b := range c.Bots {
			c.replyBots = append(c.replyBots, b.ID)
		}
	}
	if len(c.replyBots) == 0 {
		return wrong("reply", "no bot is there to reply; list them under bots, also for the role %s", roleWorker)
	}
	for _, id := range c.replyBots {
		client, err := botClient(id, apiURL(), 0)
		if err != nil {
			return wrong("reply", "%v", err)
		}
		client.Close()
	}
	return nil
}
