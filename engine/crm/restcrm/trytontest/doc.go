// Package trytontest runs the CRM Tryton 6.0 for tests, as Debian 12 packages it: a
// PostgreSQL of its own, and trytond over it, on free ports of loopback. Both are
// processes that end with the test, and before it where a test kills trytond.
//
//	Open    PostgreSQL; skips the test where Tryton cannot be had
//	Start   a database from the seed, with the module of module/ or without, and trytond
//	Kill    SIGKILL to trytond; Restart starts it again
//	Leads   what is in the database, past trytond
//
// It is for Linux alone.
package trytontest
