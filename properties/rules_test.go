package properties

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/job"
)

func huntRules(plan job.Planner, examples []job.Update, limit time.Duration) (*failure, int) {
	return search{draw: drawingRules(plan, examples), time: limit, seed: 1}.run()
}

// TestSoundRules is the control: the default plan, and one with a lead for each
// pressed button.
func TestSoundRules(t *testing.T) {
	t.Parallel()
	for name, plan := range map[string]job.Planner{"default": job.DefaultPlan, "buttons": buttons} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list, shown := breaches(plan, nil)
			for _, b := range list {
				t.Errorf("%s", b)
			}
			f, runs := huntRules(plan, common(), 400*time.Millisecond)
			if f != nil {
				t.Fatal(f.text(t.Name()))
			}
			t.Logf("%d updates, %d runs", shown, runs)
			if shown < 5000 {
				t.Errorf("the rules were shown %d updates only", shown)
			}
		})
	}
}

func buttons(key job.Key, u job.Update) job.Plan {
	if u.Kind != "callback_query" {
		return job.DefaultPlan(key, u)
	}
	business, err := job.BusinessKey(key, u)
	if err != nil {
		return job.Plan{Undecodable: err.Error()}
	}
	return job.Plan{Effect: true, Action: job.CreateLead, BusinessKey: business, Fields: map[string]string{"source": "button"}}
}

// changing is the default plan, changed where it asks for a lead.
func changing(change func(key job.Key, u job.Update, p *job.Plan)) job.Planner {
	return func(key job.Key, u job.Update) job.Plan {
		p := job.DefaultPlan(key, u)
		if p.Effect {
			change(key, u, &p)
		}
		return p
	}
}

var brokenRules = map[string]struct {
	law  string
	plan func() job.Planner
}{
	"counts": {pure, func() job.Planner {
		n := 0
		return changing(func(_ job.Key, _ job.Update, p *job.Plan) {
			n++
			p.Fields["number"] = fmt.Sprint(n)
		})
	}},
	"looks at the clock": {pure, func() job.Planner {
		return changing(func(_ job.Key, _ job.Update, p *job.Plan) { p.Fields["at"] = time.Now().String() })
	}},
	"looks for words in the bytes": {pure, func() job.Planner {
		return changing(func(_ job.Key, u job.Update, p *job.Plan) {
			p.Fields["greeting"] = fmt.Sprint(strings.Contains(string(u.Raw), "hello"))
		})
	}},
	"only the first of each text": {pure, func() job.Planner {
		seen := map[string]bool{}
		return func(key job.Key, u job.Update) job.Plan {
			p := job.DefaultPlan(key, u)
			if text := p.Fields["text"]; p.Effect && seen[text] {
				return job.Plan{Reason: "said before"}
			} else if p.Effect {
				seen[text] = true
			}
			return p
		}
	}},
	"trusts the shape": {total, func() job.Planner {
		return changing(func(_ job.Key, u job.Update, p *job.Plan) {
			var update map[string]map[string]any
			if json.Unmarshal(u.Raw, &update) != nil {
				var loose map[string]any
				_ = json.Unmarshal(u.Raw, &loose)
				chat := loose["message"].(map[string]any)["chat"].(map[string]any)
				p.Fields["chat_type"] = fmt.Sprint(chat["type"])
			}
		})
	}},
	"shares what people say": {twoForTwo, func() job.Planner {
		return changing(func(_ job.Key, _ job.Update, p *job.Plan) {
			sum := sha256.Sum256([]byte(p.Fields["text"]))
			p.BusinessKey = hex.EncodeToString(sum[:])
		})
	}},
	"takes edits for enquiries": {editsAsk, func() job.Planner {
		return func(key job.Key, u job.Update) job.Plan {
			if u.Kind == "edited_message" {
				return job.Plan{Effect: true, Action: job.CreateLead, BusinessKey: key.String(), Fields: map[string]string{"edited": "yes"}}
			}
			return job.DefaultPlan(key, u)
		}
	}},
	"takes another job's key": {ownKeys, func() job.Planner {
		return changing(func(key job.Key, _ job.Update, p *job.Plan) {
			p.BusinessKey = job.Key{Bot: key.Bot, Update: key.Update - 1}.String()
		})
	}},
	"forgets the variant": {ownKeys, func() job.Planner {
		return changing(func(_ job.Key, u job.Update, p *job.Plan) { p.BusinessKey = u.Key().String() })
	}},
	"repeats itself": {bounded, func() job.Planner {
		return changing(func(_ job.Key, _ job.Update, p *job.Plan) { p.Fields["text"] = strings.Repeat(p.Fields["text"], 100) })
	}},
	"gives no reason": {complete, func() job.Planner {
		return func(key job.Key, u job.Update) job.Plan {
			p := job.DefaultPlan(key, u)
			p.Reason = ""
			return p
		}
	}},
	"writes into the update": {neverWrite, func() job.Planner {
		return func(key job.Key, u job.Update) job.Plan {
			p := job.DefaultPlan(key, u)
			if i := strings.Index(string(u.Raw), "hello"); i >= 0 {
				copy(u.Raw[i:], "HELLO")
			}
			return p
		}
	}},
}

// TestBrokenRules: each of them breaks the law that is there for it.
func TestBrokenRules(t *testing.T) {
	t.Parallel()
	for name, b := range brokenRules {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list, _ := breaches(b.plan(), nil)
			for _, found := range list {
				if found.law == b.law {
					t.Log(found)
					return
				}
			}
			t.Errorf("no breach of %s: %v", b.law, list)
		})
	}
}

// TestKindsAreTheBotAPIs: the list here is the one that the engine knows.
func TestKindsAreTheBotAPIs(t *testing.T) {
	for _, kind := range kinds {
		if !job.KnownKind(kind) {
			t.Errorf("%s is no kind of the Bot API", kind)
		}
	}
	if len(kinds) < 25 {
		t.Errorf("%d kinds", len(kinds))
	}
}

// TestRespelled: another spelling is the same document.
func TestRespelled(t *testing.T) {
	for _, u := range append(odd(nil), common()...) {
		again := mustParse(respell(u.Raw))
		if again.Fingerprint != u.Fingerprint || string(again.Raw) == string(u.Raw) {
			t.Errorf("%.200s is respelled %.200s", u.Raw, again.Raw)
		}
	}
}
