// Package crm is the port to one CRM: a connector that creates a lead for an
// operation, finds leads by operation, and says what it knows of an outcome.
//
// The rules every connector keeps:
//
//	C1  One Create puts at most one request that can make a lead on the wire.
//	    Nothing below it retries, redirects or replays.
//	C2  No byte of that request leaves after Operation.Deadline.
//	C3  An error is NotSent, NotApplied or Refused only on positive proof. Every
//	    other error, and a success without the lead's id, is Unknown.
//	C4  The CRM stores Operation.ID with the lead, as the external id and, where
//	    the class has one, as the unique or idempotency key.
//	C5  Find answers every lead that carries the operation id, checked exactly,
//	    or an error; never an empty list for want of an answer.
//	C6  No error text, and nothing that is logged, holds a secret or a field of
//	    the lead.
package crm
