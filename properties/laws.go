package properties

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

// The limits on what rules may say. A key, a reason and the fields' names are
// bounded beside the size of the update, which is at most 1 MiB.
const (
	MaxFields     = 200
	MaxFieldName  = 100       // bytes
	MaxFieldBytes = 1 << 20   // of all names and values of one lead
	MaxDefer      = time.Hour // what waits longer is an enquiry that nobody answers
)

// A law of the rules.
const (
	total      = "total"
	pure       = "pure"
	bounded    = "bounded"
	complete   = "complete"
	ownKeys    = "own-keys"
	editsAsk   = "edits-ask-for-nothing"
	twoForTwo  = "two-updates-two-operations"
	neverWrite = "update-unchanged"
)

// breach is a law that does not hold for an update.
type breach struct {
	law, problem string
	update       []byte
}

func (b breach) String() string {
	return fmt.Sprintf("%s: %s\n  update: %.400s", b.law, b.problem, b.update)
}

// witness shows updates to the rules.
type witness struct {
	plan     job.Planner
	breaches []breach
	told     map[string]bool // by law
	shown    int
}

// breaches shows the rules all that they may meet, and returns what they break.
func breaches(plan job.Planner, examples []job.Update) (list []breach, shown int) {
	w := &witness{plan: plan, told: map[string]bool{}}
	var own []job.Update
	for _, u := range examples {
		own = append(append(own, u), mutants(u)...)
	}
	all := slices.Concat(commonShapes(), shapesOf(own))
	first := make([]job.Plan, len(all))
	for i, s := range all {
		first[i] = w.single(s)
	}
	for i := len(all) - 1; i >= 0; i-- { // in another order, after all the others
		u := all[i].update
		if again, ok := w.ask(u.Key(), u); ok && !same(again, first[i]) {
			w.breaks(pure, u, "asked later, the rules say %s, and before %s", brief(again), brief(first[i]))
		}
	}
	for _, u := range slices.Concat(examples, common()) {
		w.edits(u)
		w.twin(u)
	}
	return w.breaches, w.shown
}

func (w *witness) breaks(law string, u job.Update, format string, args ...any) {
	if !w.told[law] { // one of each tells enough
		w.told[law] = true
		w.breaches = append(w.breaches, breach{law, fmt.Sprintf(format, args...), u.Raw})
	}
}

// ask calls the rules once. It is false when they panic.
func (w *witness) ask(key job.Key, u job.Update) (p job.Plan, ok bool) {
	w.shown++
	given := u
	given.Raw = bytes.Clone(u.Raw)
	defer func() {
		if r := recover(); r != nil {
			w.breaks(total, u, "the rules panic: %v", r)
		} else if !bytes.Equal(given.Raw, u.Raw) {
			w.breaks(neverWrite, u, "the rules change the update's bytes")
		}
	}()
	return w.plan(key, given), true
}

// single holds one update against the laws that are about it alone.
func (w *witness) single(s shape) job.Plan {
	u := s.update
	key := u.Key()
	p, ok := w.ask(key, u)
	if !ok {
		return p
	}
	if again, ok := w.ask(key, u); ok && !same(p, again) {
		w.breaks(pure, u, "the rules say %s, and the next time %s", brief(p), brief(again))
	}
	if other, ok := w.ask(key, s.again); ok && u.Fingerprint == s.again.Fingerprint && !same(p, other) {
		w.breaks(pure, u, "the rules say %s, and of the same document in another spelling %s", brief(p), brief(other))
	}
	w.judge(key, u, p)
	if variant, ok := w.ask(u.VariantKey(), u); ok { // the update's id was taken by another one
		w.judge(u.VariantKey(), u, variant)
	}
	return p
}

func (w *witness) judge(key job.Key, u job.Update, p job.Plan) {
	if problem := incomplete(p); problem != "" {
		w.breaks(complete, u, "%s: %s", problem, brief(p))
	}
	if problem := unbounded(key, u, p); problem != "" {
		w.breaks(bounded, u, "%s", problem)
	}
	if _, err := job.ParseKey(p.BusinessKey); p.Effect && err == nil && p.BusinessKey != key.String() {
		w.breaks(ownKeys, u, "%s has the business key %s, which is another job's event key", key, p.BusinessKey)
	}
}

// incomplete says what is missing in a plan, or too much.
func incomplete(p job.Plan) string {
	switch {
	case p.Effect && p.Undecodable != "":
		return "an effect of an update that cannot be understood"
	case !p.Effect && p.Undecodable == "" && p.Reason == "":
		return "no effect, and no reason"
	case !p.Effect:
		return ""
	case p.Action == "" || strings.Contains(p.Action, "\n"):
		return "an effect without an action, or with one of several lines"
	case p.BusinessKey == "":
		return "an effect without a business key"
	case len(p.Fields) == 0:
		return "an effect without fields"
	default:
		return ""
	}
}

// unbounded says what is too large, or no text.
func unbounded(key job.Key, u job.Update, p job.Plan) string {
	size := 0
	for name, value := range p.Fields {
		size += len(name) + len(value)
		if name == "" || len(name) > MaxFieldName || !utf8.ValidString(name) || !utf8.ValidString(value) {
			return fmt.Sprintf("a field's name is %.40q, want 1 to %d bytes, and name and value UTF-8", name, MaxFieldName)
		}
	}
	switch allowance := 4*len(u.Raw) + 1024; {
	case len(p.Fields) > MaxFields || size > MaxFieldBytes || size > allowance:
		return fmt.Sprintf("%d fields of %d bytes, of an update of %d; at most %d of %d bytes", len(p.Fields), size, len(u.Raw), MaxFields, MaxFieldBytes)
	case len(p.BusinessKey) > allowance || len(p.Reason) > allowance || len(p.Undecodable) > allowance:
		return fmt.Sprintf("a key or a reason is far larger than the update of %d bytes", len(u.Raw))
	case p.Defer < 0 || p.Defer > MaxDefer:
		return fmt.Sprintf("the job waits %s, want 0 to %s", p.Defer, MaxDefer)
	}
	if err := recordable(key, p); err != nil {
		return err.Error()
	}
	return ""
}

// recordable reports whether the log takes the events that hold the plan.
func recordable(key job.Key, p job.Plan) error {
	const escaped = 6 // a byte takes up to six in JSON
	if escaped*(len(p.Action)+len(p.BusinessKey)+len(p.Reason)+len(p.Undecodable)) < eventlog.MaxData/4 {
		return nil
	}
	for _, e := range append(job.Start(p), job.JobClaimed{Action: p.Action, BusinessKey: p.BusinessKey, OperationID: job.OperationID(key.Bot, p.Action, p.BusinessKey)}) {
		_, data, err := job.Encode(e)
		if err != nil {
			return err
		}
		if len(data) > eventlog.MaxData/2 {
			return errors.New("an event that holds the plan is too large for the log")
		}
	}
	return nil
}

// edits shows the update as an edit of itself.
func (w *witness) edits(u job.Update) {
	for from, to := range edited {
		if u.Kind != from {
			continue
		}
		e := mustParse(renamed(u.Raw, from, to))
		if p, ok := w.ask(e.Key(), e); ok && p.Effect {
			w.breaks(editsAsk, e, "an edit asks for a lead: %s", brief(p))
		}
	}
}

// twin shows another update that has only people's words in common with this one.
func (w *witness) twin(u job.Update) {
	v := twinOf(u)
	p, ok1 := w.ask(u.Key(), u)
	q, ok2 := w.ask(v.Key(), v)
	if !ok1 || !ok2 || !p.Effect || !q.Effect || p.BusinessKey != q.BusinessKey || p.Action != q.Action {
		return
	}
	if !namesWhatIsShared(u.Bot, p.BusinessKey) {
		w.breaks(twoForTwo, v, "two updates that only say the same are one operation, by the business key %.100q", p.BusinessKey)
	}
}

// namesWhatIsShared reports whether the key has the form telegram/<bot>/<name>/….
func namesWhatIsShared(bot int64, key string) bool {
	rest, ok := strings.CutPrefix(key, fmt.Sprintf("telegram/%d/", bot))
	name, what, parts := strings.Cut(rest, "/")
	return ok && parts && what != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz-_") == "" && name != ""
}

func same(a, b job.Plan) bool { return reflect.DeepEqual(a, b) }

// brief is a plan in a line.
func brief(p job.Plan) string {
	switch {
	case p.Undecodable != "":
		return fmt.Sprintf("undecodable (%.60s)", p.Undecodable)
	case !p.Effect:
		return fmt.Sprintf("no effect (%.60s)", p.Reason)
	default:
		return fmt.Sprintf("%s for %.80q with %.200v", p.Action, p.BusinessKey, p.Fields)
	}
}
