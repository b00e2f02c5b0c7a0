package kurrentdbtest

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
)

// Point is where and how a call goes wrong.
type Point string

// Faults of an append.
const (
	AppendLost       Point = "appendlost"       // committed, then the connection is reset
	AppendCut        Point = "appendcut"        // the connection is reset before the commit
	AppendNotIndexed Point = "appendnotindexed" // committed; readers see it only after Delay, so does the answer: Aborted when CommitTimeout is over before
	AppendTimeout    Point = "appendtimeout"    // not committed, Aborted after CommitTimeout
	AppendNotReady   Point = "appendnotready"   // not committed, Unavailable
	AppendNotLeader  Point = "appendnotleader"  // not committed, the leader is said to be at Leader
	AppendDenied     Point = "appenddenied"     // not committed, PermissionDenied before the events are read: the client sees that, or EOF in sending
	AppendSlow       Point = "appendslow"       // Delay before the commit, which is dropped if the client has given up by then
	AppendHang       Point = "appendhang"       // not committed, never answered
	AppendLate       Point = "appendlate"       // committed only when the client has given up, and Delay later
)

// Faults of a read that ends. After counts the events sent before; a read
// with fewer events fails where it would end.
const (
	ReadCut         Point = "readcut"         // the connection is reset; the client may see fewer events than After
	ReadUnavailable Point = "readunavailable" // Status, Unavailable if unset, behind exactly After events
	ReadHang        Point = "readhang"        // nothing more comes, the connection lives
	ReadSlow        Point = "readslow"        // Delay before every event behind After
	ReadStale       Point = "readstale"       // as on a follower that lags by the newest Behind events; with requires-leader it answers not-leader
)

// Faults of a subscription. After counts the events sent before.
const (
	SubscribeUnavailable Point = "subscribeunavailable" // Status, Unavailable if unset, instead of the confirmation
	SubscribeUnconfirmed Point = "subscribeunconfirmed" // the confirmation never comes, the connection lives
	SubscribeStall       Point = "subscribestall"       // no message any more, the connection lives
	SubscribeDrop        Point = "subscribedrop"        // ends with Status, Unavailable if unset
	SubscribeCut         Point = "subscribecut"         // the connection is reset
	SubscribeCheckpoint  Point = "subscribecheckpoint"  // a checkpoint at (2^64-1, 2^64-1), then it goes on
	SubscribeSlow        Point = "subscribeslow"        // Delay before every event behind After
)

var points = []Point{
	AppendLost, AppendCut, AppendNotIndexed, AppendTimeout, AppendNotReady, AppendNotLeader, AppendDenied, AppendSlow, AppendHang, AppendLate,
	ReadCut, ReadUnavailable, ReadHang, ReadSlow, ReadStale,
	SubscribeUnavailable, SubscribeUnconfirmed, SubscribeStall, SubscribeDrop, SubscribeCut, SubscribeCheckpoint, SubscribeSlow,
}

// operation is the kind of call that a point belongs to.
type operation string

const (
	opAppend    operation = "append"
	opRead      operation = "read"
	opSubscribe operation = "subscribe"
)

// Fault is one way in which calls go wrong. A call meets at most one: the first
// of those injected that fits and fires.
type Fault struct {
	Point Point

	// Stream is a prefix of the streams that it fits; a call on all streams is one
	// on "$all".
	Stream string

	// Times is how often it fires at most; 0 is once, or without end if
	// Probability is set.
	Times int

	// Probability that it fires on a call that fits; 0 is always.
	Probability float64

	After  int           // events sent before
	Behind int           // events that a stale read misses
	Delay  time.Duration // see the points
	Status codes.Code    // see the points
	Leader string        // host:port; "" is this server
}

// Injection is a fault that waits for calls.
type Injection struct {
	plan  *faultPlan
	fault Fault
	left  int // -1: without end
	fired int
}

// Fired says how many calls have met the fault.
func (i *Injection) Fired() int {
	i.plan.mu.Lock()
	defer i.plan.mu.Unlock()
	return i.fired
}

// Remove takes the fault back; calls that have met it already stay with it.
func (i *Injection) Remove() {
	i.plan.mu.Lock()
	defer i.plan.mu.Unlock()
	i.left = 0
	i.plan.forget(i)
}

// Inject lets calls go wrong. It panics on a point that does not exist.
func (s *Server) Inject(f Fault) *Injection {
	if !slices.Contains(points, f.Point) {
		panic(fmt.Sprintf("kurrentdbtest: no fault has the point %q", f.Point))
	}
	i := &Injection{plan: s.faults, fault: f, left: f.Times}
	switch {
	case f.Times == 0 && f.Probability > 0:
		i.left = -1
	case f.Times == 0:
		i.left = 1
	}
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.injected = append(s.faults.injected, i)
	return i
}

// ClearFaults takes back every fault.
func (s *Server) ClearFaults() {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.injected = nil
}

type faultPlan struct {
	mu       sync.Mutex
	random   *rand.Rand
	injected []*Injection
}

func (p *faultPlan) forget(i *Injection) {
	p.injected = slices.DeleteFunc(p.injected, func(other *Injection) bool { return other == i })
}

// take finds what goes wrong with a call. The fault of a call that all goes
// well with has no point.
func (p *faultPlan) take(op operation, stream string) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range p.injected {
		if !strings.HasPrefix(string(i.fault.Point), string(op)) || !strings.HasPrefix(stream, i.fault.Stream) {
			continue
		}
		if i.fault.Probability > 0 && p.random.Float64() >= i.fault.Probability {
			continue
		}
		i.fired++
		if i.left > 0 {
			i.left--
		}
		if i.left == 0 {
			p.forget(i)
		}
		return i.fault
	}
	return Fault{}
}

// status is what a call ends with at a fault that has a Status.
func (f Fault) status() error {
	code := f.Status
	if code == codes.OK {
		code = codes.Unavailable
	}
	return failure{code, "injected: " + string(f.Point), nil}
}

// ParseFaults reads a list such as "appendlost=0.01,readcut=0.005": points and
// the probability that a call meets each. ":" and a duration behind the
// probability is the fault's Delay.
func ParseFaults(list string) ([]Fault, error) {
	var faults []Fault
	for item := range strings.SplitSeq(list, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		point, value, _ := strings.Cut(item, "=")
		value, delay, delayed := strings.Cut(value, ":")
		f := Fault{Point: Point(point)}
		if !slices.Contains(points, f.Point) {
			return nil, fmt.Errorf("fault %q: no such point, there are %s", item, pointNames())
		}
		var err error
		if f.Probability, err = strconv.ParseFloat(value, 64); err != nil || !(f.Probability > 0 && f.Probability <= 1) {
			return nil, fmt.Errorf("fault %q: %q is no probability above 0 and up to 1", item, value)
		}
		if delayed {
			if f.Delay, err = time.ParseDuration(delay); err != nil || f.Delay < 0 {
				return nil, fmt.Errorf("fault %q: %q is no duration", item, delay)
			}
		}
		faults = append(faults, f)
	}
	return faults, nil
}

func pointNames() string {
	names := map[string]bool{}
	for _, p := range points {
		names[string(p)] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), ", ")
}

// pause waits for d or the end of the call.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hang answers nothing until the client or the server gives up.
func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}
