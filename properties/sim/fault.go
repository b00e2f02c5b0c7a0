package sim

// Fault is what happens to one call of a port, or to a process.
type Fault uint8

// The faults. Before an effect, behind it, or instead of it.
const (
	None Fault = iota

	AppendRefused // the log is down: nothing is recorded, and that is certain
	AppendLost    // nothing is recorded, and the outcome is unknown
	AckLost       // recorded, and the outcome is unknown
	AppendLate    // the outcome is unknown, and it is recorded later
	ReadRefused
	ReadCut   // an error behind the first event
	ReadStale // without what nobody was told of yet

	NotConnected // no request leaves
	CutBefore    // the connection breaks before the effect
	CutAfter     // and behind it
	EffectLate   // the effect comes later, and so does the answer
	RateLimited
	RateLimitedDate
	RateLimitedAbsent
	RateLimitedPast
	RateLimitedFar
	ErrorBefore
	ErrorAfter
	NotExecuted
	UnavailableBefore
	UnavailableAfter
	WithoutID
	ErrorInside
	ErrorInsideAfter
	HTMLBefore
	HTMLAfter
	BadRequestAfter
	AcceptedLater
	LoginRedirect
	RefusedNow     // a refusal, of what it may have made before
	Duplicated     // a proxy sends the request twice
	DuplicatedLate // and the second one arrives later
	LookupLags     // leads younger than the index's lag are not found
	AnswerLost     // the CRM's answer does not arrive

	ReplyLost   // Telegram does not get our answer
	Redelivered // Telegram sends again what it was told is stored
	Respelled   // the same update in another spelling
	Crashed
	Terminated
	Paused // a process goes on after its claim has run out
	Skewed
	Copied
	FromFuture
	Operated
	faults
)

var faultNames = [faults]string{
	"none", "append refused", "append lost", "acknowledgement lost", "append late", "read refused", "read cut",
	"read stale", "not connected", "cut before", "cut after", "effect late", "rate limited",
	"rate limited until a date", "rate limited without a time", "rate limited until yesterday", "rate limited for a year",
	"error before", "error after", "not executed", "unavailable before", "unavailable after", "no id",
	"error inside a success", "error inside a success, after", "HTML before", "HTML after", "bad request after",
	"accepted for later", "redirect to a login", "refused this time", "duplicated", "duplicated late", "lookup lags", "answer lost",
	"reply lost", "redelivered", "respelled", "crashed", "terminated", "paused", "clock skewed",
	"copied by a person", "event of a newer release", "operator",
}

func (f Fault) String() string { return faultNames[f] }

// AllFaults allows every fault.
const AllFaults = 1<<faults - 1

// port is the kind of call at which an actor stands.
type port uint8

const (
	idle port = iota // a worker without a job
	now
	appending
	reading
	sweeping
	creating
	created // the request has arrived; the answer is under way
	finding
	found
	replying
	sleeping
	ended
)

var portNames = [...]string{
	"is idle", "reads the clock", "appends", "reads", "sweeps the log", "sends a create", "awaits the answer",
	"sends a lookup", "awaits the answer", "replies", "sleeps", "has ended",
}

// targets are what Until chooses from.
var targets = []port{creating, appending, created, finding, replying, found, reading, sweeping, idle}

var (
	appendFaults = []Fault{AppendLost, AckLost, AppendRefused, AppendLate}
	readFaults   = []Fault{ReadRefused, ReadCut, ReadStale}
	sweepFaults  = []Fault{ReadRefused, ReadCut}
	createFaults = []Fault{
		CutAfter, CutBefore, EffectLate, RateLimited, NotConnected, ErrorAfter, ErrorBefore, NotExecuted,
		UnavailableAfter, UnavailableBefore, WithoutID, BadRequestAfter, AcceptedLater, ErrorInside,
		ErrorInsideAfter, HTMLBefore, HTMLAfter, LoginRedirect, RefusedNow, RateLimitedDate, RateLimitedAbsent,
		RateLimitedPast, RateLimitedFar,
	}
	createTwiceFaults = append(createFaults[:len(createFaults):len(createFaults)], Duplicated, DuplicatedLate)
	findFaults        = []Fault{
		LookupLags, CutBefore, ErrorBefore, RateLimited, NotConnected, ErrorInside, HTMLBefore, LoginRedirect,
		UnavailableBefore, NotExecuted, RateLimitedDate, RateLimitedAbsent,
	}
	answerFaults = []Fault{AnswerLost}
	replyFaults  = []Fault{ReplyLost}
)

// possible are the faults that can happen to the call.
func (w *world) possible(at port) []Fault {
	if w.parts.crm != nil && (at == creating || at == created || at == finding || at == found) {
		return w.possibleOutside(at)
	}
	switch at {
	case appending:
		return appendFaults
	case reading:
		return readFaults
	case sweeping:
		return sweepFaults
	case creating:
		if w.plan.Class.Repeatable() {
			return createTwiceFaults
		}
		return createFaults // in the other classes the CRM itself would make two leads
	case created, found:
		return answerFaults
	case finding:
		return findFaults
	case replying:
		return replyFaults
	default:
		return nil
	}
}

// fault is the f-th of those that can happen to the call, if the plan allows it.
func (w *world) fault(at port, f int) Fault {
	list := w.possible(at)
	if f <= 0 || len(list) == 0 {
		return None
	}
	chosen := list[(f-1)%len(list)]
	if w.plan.Faults>>chosen&1 == 0 {
		return None
	}
	return chosen
}
