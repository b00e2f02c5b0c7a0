// Package ports holds the properties of the log port: what is true of every
// history of calls, however they fall, and not only of the cases that somebody
// thought of. It has tests alone.
//
// # The same answers
//
// Drawn histories run over a plain model of the port, the log in memory and the
// log in a file, which is opened again in between. Every answer is compared.
//
// # Killed at every call
//
// A VFS between SQLite and the file system writes down each call that changes a
// file: made, written, cut, synced, removed. A process that is dead does nothing
// more, so what it leaves when it dies at call n is what the calls before n made
// of the files, and perhaps a first part of what n was to write. So one run tells
// what every death would have left, and for each that is put into a folder of
// its own and opened by a log on a healthy disk. Everything acknowledged must be
// there, every append whole or absent, and the log must go on: the interrupted
// append is repeated, and another follows.
//
// The same calls tell what a machine leaves that loses its power: of every file
// what it was at its last sync, and any part of what was written since, by
// sectors of 512 bytes. This is judged for each call too, and once more behind
// each death and the opening that follows it: nothing may be acknowledged that
// recovery made visible and nobody has synced.
//
// And the disk fails at every call while the process lives on, once or for good:
// then each outcome that the log told must be the truth.
//
// That the VFS sees every call is checked: what it wrote down must make the very
// files. Taken for true, and not shown here: that a sync does what it says, that
// a partly written sector spoils no byte beside what was written, and that the
// first sync of a WAL or journal also syncs its folder, as SQLite's own VFS for
// Unix does it. The index of the WAL need not survive: it is left as garbage.
//
// # Linearizable
//
// Clients append and read at the same time: over the log in memory, a log in a
// file, and two handles to one file, with answers that get lost. A checker
// searches for an order of the calls, one after the other, that explains all
// answers. If there is none, its picture of the history is kept as an HTML file
// that the failure names.
//
// Each of the three has tests that show it fail on logs, or disks, which are
// wrong in one way.
//
// LEADONCE_PROPERTIES_TIME=10m makes the properties go on with new histories,
// each for that long; -timeout has to allow for it. With -short, or the race
// detector, only every so many calls are failed or died at.
package ports
