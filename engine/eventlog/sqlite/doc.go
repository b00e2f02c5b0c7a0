// Package sqlite is the embedded log: one SQLite file, safe for several
// processes at the same time, readable with the ordinary sqlite3 tool.
//
// One writer goroutine takes whatever appends wait and records them in one
// transaction with one fsync (group commit); readers have their own
// connections and hold none of them while their caller works on an event.
//
//	log, err := sqlite.Open(ctx, "/var/lib/leadonce/log.db", sqlite.Options{})
//
// An auditor reads the view named log:
//
//	sqlite3 -readonly log.db "SELECT * FROM log WHERE stream = 'update-1-42'"
//
// The file must lie on a local disk: WAL needs shared memory and locks that
// network file systems do not give. While it is open, no code of the same
// process may open and close it by other means, since POSIX drops every lock
// of a process on a file whenever the process closes any descriptor of it.
// A running file is copied with sqlite3's .backup, not with cp.
//
// DESIGN.md in this folder says why each setting is what it is, and what was
// measured.
package sqlite
