// Package crmtest checks a connector, and what its CRM promises, against the
// rules C1 to C6 of package crm and against the connector's capability class.
//
// The suite stands on the wire: the connector is given the address of a proxy
// of the suite's own in front of the CRM. There the requests are counted, and
// the answers are cut, lost, forged and withheld. So any CRM that speaks HTTP
// can be checked, also one that cannot be told to misbehave; all it has to give
// is a Sandbox, a second way to see which leads exist.
//
// Check returns what it found; Run is the same as a test. A finding names its
// rule: C1 to C6, or CLASS when the CRM does not keep what the class promises, as
// one that accepts an idempotency key and ignores it.
//
// The suite makes some hundred leads and never deletes any: do not point it at
// a CRM that people work with.
//
// Certify is for a CRM that has no Sandbox, as the test account of a vendor: it goes
// after the promise of the classes alone, over the same wire, with the connector's own
// lookup for a witness.
package crmtest
