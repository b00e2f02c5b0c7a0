// Package projections keeps read models of the log in one SQLite file: what an
// operator lists, counts and searches. It decides nothing. Whoever decides reads
// the job's own stream, so a read model that is late, wiped or lost costs no job
// and no lead.
//
//	jobs        one row per job, folded by job.State and by nothing else
//	mapping     event key → operation id → CRM id
//	timings     per job, from acceptance to the first claim and to the end
//	counts      jobs by phase, and what needs a look
//	duplicates  deliveries of an update that was stored already
//	incidents   keys and receipts that contradict what is recorded
//
// A read model is one file here and one row in models (model.go).
//
// # Exactly once
//
// The rows and the checkpoint behind them change in one transaction. It takes
// the write lock first and compares the checkpoint with the one it knows: when
// another process fed the file meanwhile, everything remembered is dropped, and
// events at or below the new checkpoint are skipped. So a server and a command
// line may feed one file at the same time, and a crash loses or repeats nothing.
//
// The checkpoint names the newest event of a job's stream, never one of another
// stream: those may be deleted by whoever owns them, and a checkpoint whose
// event is gone cannot be told from one of another log. What lies behind it on
// other streams is read again at the next start and skipped again.
//
// # When the models are built anew
//
// A checkpoint that is not in the log (another log, or an older state of it), a
// file that another version of the schema or of the fold wrote, and a job that
// stopped at an event type which this release knows: each wipes the models, says
// so through Options.Reset, and the next CatchUp builds them again. Rebuild does
// it by hand: into a second set of tables, which takes the place of the first in
// one transaction, so that readers have the old models until then.
//
// # What stops a job
//
// An event that cannot be decoded, or is not where it can be, stops its job: the
// row keeps the state before it, with the event's position and the reason, and
// every other job goes on. A stopped job is counted, and listed by
// Filter.Stopped.
//
// # Privacy
//
// The update's text is dropped when its event is decoded, before anything else
// sees it. The file has ids, times, phases and the reasons that the engine
// recorded; no message, no name, no field of a lead.
//
// # Durability
//
// The file is in WAL mode with synchronous=NORMAL: a power cut may take the last
// transactions, rows and checkpoint together, and they are read from the log
// again. It must lie on a local disk.
package projections
