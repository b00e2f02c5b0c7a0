package crmsim_test
import ("testing";"time"
 sim "github.com/leadonce/leadonce/crmsim"
 "github.com/leadonce/leadonce/engine/crm"
 "github.com/leadonce/leadonce/engine/job")
func TestZZ(t *testing.T){
 def := job.Policy{MaxAttempts:8,RetryFirst:time.Second,RetryMax:10*time.Minute,Lease:time.Minute,CallTimeout:20*time.Second,ClockSkew:5*time.Second}
 for _,f:=range []sim.Fault{sim.NotExecuted,sim.RateLimitedAbsent,sim.UnavailableBefore}{
 for _,class:=range crm.Classes{
  w:=newWorld(t,setup{class:class,policy:def})
  began:=w.clock.Now()
  w.choose=func(sim.Op) sim.Fault{ if w.clock.Now().Sub(began)<5*time.Minute {return f}; return sim.NoFault}
  for i:=range 20 { w.deliver(int64(i+1)) }
  w.run()
  got:=map[job.Phase]int{}
  for i:=range 20 { got[w.state(job.Key{Bot:bot,Update:int64(i+1)}).Phase]++ }
  t.Log(f,class,got,"requests",w.crm.Stats().Requests, "took", w.clock.Now().Sub(began))
 }}
 // outage by refused connections
 w:=newWorld(t,setup{class:crm.Lookup,policy:def}); w.refused.Store(true)
 for i:=range 20 { w.deliver(int64(i+1)) }
 end:=w.clock.Now().Add(62*time.Hour)
 w.runUntil(func()bool{return w.clock.Now().After(end)})
 n:=0
 for range w.log.ReadAll(t.Context(), w.agenda.Checkpoint().Position) {n++}
 tail,_:=w.log.Tail(t.Context())
 t.Log("62 h refused, 20 jobs: tail", tail)
}
