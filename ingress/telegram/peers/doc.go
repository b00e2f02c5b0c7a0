// Package peers measures the intake of leadonce beside the ways in which a
// webhook is usually made durable:
//
//   - textbook: chi, pgx with the pool that it makes by itself, TCP, and one
//     INSERT … ON CONFLICT DO NOTHING of a jsonb for each request;
//   - tuned: the same at its best, with the pool size that suits the load, found
//     by trial, a Unix socket and a leaner table;
//   - river: River's unique insert, for those who want a job and not just a row,
//     with the best pool size and a Unix socket too.
//
// All of them and leadonce answer 200 only after the update is on disk. They are
// served by the same http.Server settings and loaded by the same client, with
// the same updates of 1 KB. They take turns on the same cores and the same disk,
// so their ratios hold for any machine; but only while nothing else runs there:
// what competes for the cores is one process more to PostgreSQL's many, and half
// of all to leadonce. After each run the rows are counted.
//
// PostgreSQL has its defaults, synchronous_commit among them, but for room for
// more connections.
//
// What leadonce gains most from is a slow disk: a sync takes as long for one
// update as for all that wait. Beside a fast one the cores decide, and on two of
// them the handler without any store is the ceiling.
//
// It is a module of its own, so that none of this is a dependency of leadonce.
//
// # Running it
//
//	go test -run '^$' -bench . -benchtime 1x .
//
// in this folder takes about a minute. It needs the programs of PostgreSQL 15 or
// later, such as those of
//
//	apt-get install -y postgresql
//
// and skips, saying so, where there are none. It starts a cluster of its own in
// a temporary folder, on a free port, and stops and removes it in the end; a
// server that runs already is left alone. As root it runs the cluster as the
// user postgres, since PostgreSQL refuses to run as root.
package peers
