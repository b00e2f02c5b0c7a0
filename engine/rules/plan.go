package rules

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leadonce/leadonce/engine/job"
)

// editPrefix begins the kinds of edits.
const editPrefix = "edited_"

// Plan is a job.Planner.
func (s *Set) Plan(key job.Key, u job.Update) job.Plan {
	plan, _ := s.decide(key, u)
	return plan
}

// trace is how a decision came about.
type trace struct {
	env    *env  // nil when the update could not be read
	index  int   // of the rule that decided; len(rules) for the defaults
	failed error // what could not be evaluated. It may repeat what a person wrote
	part   string
}

func (s *Set) decide(key job.Key, u job.Update) (job.Plan, trace) {
	if strings.HasPrefix(u.Kind, editPrefix) {
		return job.Plan{Reason: "an edit asks for no lead"}, trace{index: len(s.rules)}
	}
	e, err := read(u)
	if err != nil {
		return job.Plan{Undecodable: err.Error()}, trace{index: len(s.rules)}
	}
	for i := range s.rules {
		r := &s.rules[i]
		held, err := r.when.holds(e)
		if err != nil {
			return r.failure("condition"), trace{e, i, err, "when"}
		}
		if held {
			plan, part, err := r.plan(key, u, e)
			return plan, trace{e, i, err, part}
		}
	}
	return job.DefaultPlan(key, u), trace{env: e, index: len(s.rules)}
}

// failure says in fixed words what could not be evaluated.
func (r *rule) failure(what string) job.Plan {
	return job.Plan{Undecodable: fmt.Sprintf("the rule %s: its %s cannot be evaluated", r.name, what)}
}

// plan is what the rule asks for, once its condition holds. part is what failed.
func (r *rule) plan(key job.Key, u job.Update, e *env) (p job.Plan, part string, err error) {
	if r.ignore {
		return job.Plan{Reason: fmt.Sprintf("the rule %s ignores it", r.name)}, "", nil
	}
	message := asMessage(u, e)
	business, err := r.businessKey(key, message, e)
	if err != nil {
		return r.failure("business key"), "business_key", err
	}
	fields, part, err := r.leadFields(key, u, message, e)
	if err != nil {
		return r.failure("field " + strings.TrimPrefix(part, "fields.")), part, err
	}
	p = job.Plan{Effect: true, Action: CreateLead, BusinessKey: business, Fields: fields}
	if r.series > 0 && business == key.String() && u.Chat != 0 && u.User != 0 && e.sent > 0 {
		p.Series = job.Series{Name: r.name, Window: r.series, SentAt: time.Unix(e.sent, 0).UTC()}
	}
	if e.Album != "" && e.Caption == "" && business != key.String() {
		p.Defer = job.AlbumDefer
	}
	return p, "", nil
}

// asMessage is the update as one of the kind message, for the kinds that carry one.
func asMessage(u job.Update, e *env) job.Update {
	if u.Kind == "message" || e.message == nil {
		return u
	}
	raw, err := json.Marshal(map[string]json.RawMessage{"message": e.message})
	if err != nil {
		return u
	}
	u.Kind, u.Raw = "message", raw
	return u
}

// businessKey names the rule and what its expression says, or the operation that
// the update is by default.
func (r *rule) businessKey(key job.Key, u job.Update, e *env) (string, error) {
	said := ""
	if r.key != nil {
		var err error
		if said, err = r.key.text(e, value); err != nil {
			return "", err
		}
	}
	switch {
	case said == "":
		return job.BusinessKey(key, u)
	case len(said) > MaxKey:
		return "", fmt.Errorf("the result has %d bytes, at most %d", len(said), MaxKey)
	default:
		return fmt.Sprintf("telegram/%d/rule/%s/%s", u.Bot, r.name, strconv.QuoteToASCII(said)), nil
	}
}

// leadFields are the default ones under the rule's.
func (r *rule) leadFields(key job.Key, u, message job.Update, e *env) (fields map[string]string, part string, err error) {
	if fields = job.DefaultFields(message); fields == nil {
		fields = e.fields()
	}
	for _, f := range r.fields {
		text, err := f.value.text(e)
		if err != nil {
			return nil, "fields." + f.name, err
		}
		fields[f.name] = strings.ToValidUTF8(text, "")
	}
	size := 0
	for name, text := range fields {
		if size += len(name) + len(text); text == "" {
			delete(fields, name)
		}
	}
	if most := 4*len(u.Raw) + 1024; size > most {
		return nil, "fields", fmt.Errorf("they have %d bytes, at most %d", size, most)
	}
	if len(fields) == 0 {
		fields["source"] = "telegram" // a lead without any field would be refused
	}
	return fields, "", nil
}

// fields are the default ones of an update that is no message with something in it.
func (e *env) fields() map[string]string {
	f := map[string]string{
		"source": "telegram", "kind": e.Kind, "bot_id": strconv.FormatInt(e.Bot, 10), "text": e.Text, "data": e.Data,
		"name": e.User.Name, "username": e.User.Username, "language": e.User.Language,
	}
	if e.Chat.ID != 0 {
		f["chat_id"] = strconv.FormatInt(e.Chat.ID, 10)
	}
	if e.User.ID != 0 {
		f["user_id"] = strconv.FormatInt(e.User.ID, 10)
	}
	return f
}
