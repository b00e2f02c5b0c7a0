package job

import (
	"fmt"
	"testing"
)

// TestStandInEveryCombination compares with the rules in words.
func TestStandInEveryCombination(t *testing.T) {
	self, other := Key{Bot: 7, Update: 1}, Key{Bot: 7, Update: 2}
	seen := map[Standing]int{}
	for _, phase := range append([]Phase{""}, Phases...) {
		for _, ambiguous := range []bool{false, true} {
			for _, id := range []string{"", "4711"} {
				for reserved := range 3 {
					for requeues := range 3 {
						holder := State{Key: other, Phase: phase, Ambiguous: ambiguous, CRMID: id, Requeues: requeues}
						r := OperationReserved{Holder: other, Requeues: reserved}
						want := refereeStand(holder, reserved)
						seen[want]++
						if got := Stand(r, State{Key: self, Phase: Pending}, holder); got != want {
							t.Errorf("reserved %d times requeued, holder %s ambiguous %t id %q requeued %d: standing %d, want %d",
								reserved, phase, ambiguous, id, requeues, got, want)
						}
					}
				}
			}
		}
	}
	if len(seen) != 4 {
		t.Errorf("standings seen: %v", seen)
	}
}

func refereeStand(holder State, reserved int) Standing {
	final := holder.Phase == Done || holder.Phase == DeadLetter
	stale := holder.Requeues < reserved // the holder's state is older than its reservation
	switch {
	case holder.Phase == Done && holder.CRMID != "":
		return Satisfied
	case final && !stale && holder.Ambiguous:
		return Blocked
	case final && !stale:
		return MayTake
	}
	return MustWait
}

func TestAHolderReservesAnewAfterItWasRequeued(t *testing.T) {
	self := Key{Bot: 7, Update: 1}
	for reserved := range 3 {
		for requeues := range 3 {
			for _, phase := range Phases {
				want := MayTake
				if reserved == requeues {
					want = Holds
				}
				s := State{Key: self, Phase: phase, Requeues: requeues}
				if got := Stand(OperationReserved{self, reserved}, s, s); got != want {
					t.Errorf("reserved at %d, requeued %d times: standing %d, want %d", reserved, requeues, got, want)
				}
			}
		}
	}
}

func TestT41_ASecondJobTakesOverWhatTheFirstGaveUp(t *testing.T) {
	first, second := State{Key: Key{Bot: 7, Update: 1}}, State{Key: Key{Bot: 7, Update: 2}, Phase: Pending}
	r := OperationReserved{Holder: first.Key}
	steps := []struct {
		e    Event
		want Standing
	}{
		{UpdateReceived{Key: first.Key}, MustWait},
		{JobClaimed{}, MustWait},
		{AttemptNotApplied{}, MustWait},
		{JobClaimed{}, MustWait},
		{JobDeadLettered{Reason: "refused"}, MayTake},
		{DeliveryRepeated{}, MayTake},
		{ReceiptConflicted{CRMID: "4711"}, Blocked}, // it had an effect after all
		{JobRequeued{}, MustWait},
		{JobDeadLettered{Reason: "discarded"}, Blocked},
		{JobRequeued{}, MustWait},
		{LeadConfirmed{CRMID: "4711"}, Satisfied},
	}
	for i, step := range steps {
		first = first.Evolve(step.e, epoch)
		if got := Stand(r, second, first); got != step.want {
			t.Errorf("step %d, %s: standing %d, want %d", i, step.e.Name(), got, step.want)
		}
	}
}

// A shared operation is explored whole: two jobs, a worker for each, an
// operator, every interleaving of their reads and appends. Each worker works in
// the engine's order: load the job, read the reservation, read its holder,
// reserve at the revision read, claim at the revision loaded, call, record.

type protocolJob struct {
	phase     Phase
	requeues  int
	ambiguous bool
	crmID     string
	revision  int
}

func (j protocolJob) state(key int64) State {
	return State{Key: Key{Bot: 7, Update: key}, Phase: j.phase, Requeues: j.requeues, Ambiguous: j.ambiguous, CRMID: j.crmID}
}

type reservation struct {
	holder   int // -1 for none
	requeues int
	revision int
}

type protocolWorker struct {
	step string
	job  protocolJob // as loaded
	read reservation
}

type protocol struct {
	jobs     [2]protocolJob
	workers  [2]protocolWorker
	reserved reservation
	leads    int
	acts     int // the operator's, left
}

func (p protocol) reservedEvent(r reservation) OperationReserved {
	return OperationReserved{Holder: Key{Bot: 7, Update: int64(r.holder)}, Requeues: r.requeues}
}

// append is an append at an expected revision.
func (p protocol) append(i, expected int, change func(*protocolJob)) (protocol, bool) {
	if p.jobs[i].revision != expected {
		return p, false
	}
	change(&p.jobs[i])
	p.jobs[i].revision++
	return p, true
}

// nexts are the protocol's states after one more step of anybody.
func (p protocol) nexts() []protocol {
	var list []protocol
	for i := range p.workers {
		list = append(list, p.work(i)...)
	}
	if p.acts == 0 {
		return list
	}
	p.acts--
	for i, j := range p.jobs {
		var act func(*protocolJob)
		switch j.phase {
		case DeadLetter:
			act = func(j *protocolJob) { j.phase, j.requeues = Pending, j.requeues+1 }
		case Pending:
			act = func(j *protocolJob) { j.phase = DeadLetter }
		default:
			continue
		}
		next, _ := p.append(i, j.revision, act)
		list = append(list, next)
	}
	return list
}

func (p protocol) work(i int) []protocol {
	w := p.workers[i]
	idle := p
	idle.workers[i] = protocolWorker{}
	switch w.step {
	case "":
		p.workers[i] = protocolWorker{step: "read the reservation", job: p.jobs[i]}
		if p.jobs[i].phase != Pending {
			return nil
		}
	case "read the reservation":
		p.workers[i].step, p.workers[i].read = "judge", p.reserved
	case "judge":
		if w.read.holder < 0 {
			p.workers[i].step = "reserve"
			break
		}
		switch Stand(p.reservedEvent(w.read), w.job.state(int64(i)), p.jobs[w.read.holder].state(int64(w.read.holder))) {
		case Holds:
			p.workers[i].step = "claim"
		case MayTake:
			p.workers[i].step = "reserve"
		case Satisfied:
			idle, _ = idle.append(i, w.job.revision, func(j *protocolJob) { j.phase = Done })
			return []protocol{idle}
		default:
			return []protocol{idle}
		}
	case "reserve":
		if p.reserved.revision != w.read.revision {
			return []protocol{idle}
		}
		p.reserved = reservation{i, w.job.requeues, p.reserved.revision + 1}
		p.workers[i].step = "claim"
	case "claim":
		next, ok := p.append(i, w.job.revision, func(j *protocolJob) { j.phase = Claimed })
		if !ok {
			return []protocol{idle}
		}
		next.workers[i].step = "call"
		return []protocol{next}
	case "call":
		return idle.outcomes(i)
	}
	return []protocol{p}
}

// outcomes of the call of job i, recorded at once: nobody else may change a
// claimed job here.
func (p protocol) outcomes(i int) []protocol {
	at := p.jobs[i].revision
	confirmed, _ := p.append(i, at, func(j *protocolJob) { j.phase, j.crmID, j.ambiguous = Done, "4711", false })
	confirmed.leads++
	refused, _ := p.append(i, at, func(j *protocolJob) { j.phase = DeadLetter })
	notApplied, _ := p.append(i, at, func(j *protocolJob) { j.phase = Pending })
	discarded, _ := p.append(i, at, func(j *protocolJob) { j.phase, j.ambiguous = DeadLetter, true }) // ambiguous, then discarded
	discarded.leads++
	if p.jobs[i].ambiguous { // a requeued ambiguity is looked up first, and found
		return []protocol{{jobs: confirmed.jobs, workers: p.workers, reserved: p.reserved, leads: p.leads, acts: p.acts}}
	}
	return []protocol{confirmed, refused, notApplied, discarded}
}

func TestTwoJobsNeverMakeOneOperationTwice(t *testing.T) {
	fresh := protocolJob{phase: Pending}
	start := protocol{jobs: [2]protocolJob{fresh, fresh}, reserved: reservation{holder: -1}, acts: 3}
	seen := map[protocol]bool{start: true}
	standings := map[Standing]bool{}
	for queue := []protocol{start}; len(queue) > 0; queue = queue[1:] {
		p := queue[0]
		if problem := p.problem(standings); problem != "" {
			t.Fatalf("%s: %+v", problem, p)
		}
		for _, next := range p.nexts() {
			if next.jobs[0].revision < 7 && next.jobs[1].revision < 7 && !seen[next] {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	if len(seen) < 10_000 || len(standings) != 5 {
		t.Errorf("only %d states with the standings %v were explored", len(seen), standings)
	}
}

// problem is what is wrong with a state: a lead twice, two jobs calling at once,
// or a job that waits for one that will never move.
func (p protocol) problem(standings map[Standing]bool) string {
	if p.leads > 1 {
		return "two leads"
	}
	if p.jobs[0].phase == Claimed && p.jobs[1].phase == Claimed {
		return "both jobs call"
	}
	for i, j := range p.jobs {
		if j.phase != Pending || p.reserved.holder < 0 {
			continue
		}
		holder := p.jobs[p.reserved.holder]
		got := Stand(p.reservedEvent(p.reserved), j.state(int64(i)), holder.state(int64(p.reserved.holder)))
		standings[got] = true
		if got == MustWait && holder.phase.Final() {
			return fmt.Sprintf("job %d waits for ever", i)
		}
	}
	return ""
}
