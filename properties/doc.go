// Package properties lets a team run the contract of its own parts in its own CI:
//
//	CheckConnector  a connector, with the CRM's sandbox behind it
//	CheckLog        a log backend
//	CheckRules      rules: what an update asks for
//
// Each of them runs what is demanded of the part alone, and then the production
// engine over it, in the simulation of package sim, under plans that are drawn for
// ten seconds: processes die, acknowledgements and answers get lost, time passes.
// The judge knows what was truly sent and what the CRM truly has. A run that breaks
// a promise is made as short as it can be and told in words; its seed plays it again.
//
//	LEADONCE_PROPERTIES_TIME=10m  draw plans for that long
//	LEADONCE_PROPERTIES_SEED=n    play the one plan of that seed
//
// The engine's time is simulated, and that of a sandbox is not. A connector is given
// what is left of its deadline from now on; an answer that is withheld is waited for
// Subject.Short; and a lookup that misses a lead is repeated until the connector's
// own settle time is over in real time. So a settle time that is honest and long
// costs nothing where the search is fast, and one that is too short is found.
//
// What cannot be shown so: how long a CRM remembers an idempotency key (ask it on two
// days), what a machine leaves that loses its power, and a second request that a
// connector sends after its call has ended.
//
// USE.md has an example to copy.
package properties
