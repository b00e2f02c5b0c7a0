// Package memory is the log in memory: the model that the other adapters are
// measured against. It gives every guarantee of the port but durability (G2),
// which ends with the process, and with it the reach of G12 to one process.
//
// It is deterministic: what it answers depends only on the order of the calls.
// No call but Subscribe starts a goroutine or waits for anything but the mutex,
// so that a scheduler may take each of them as one step.
package memory
