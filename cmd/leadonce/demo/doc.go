// Package demo runs leadonce as it is meant to be used, only worse: the real
// program against a CRM that misbehaves, deliveries made as Telegram makes them,
// and SIGKILLs in the middle. Then it asks the CRM's own journal what came of
// it. It uses the programs from outside and shares no code with them.
package demo
