// Package crmsim is the connector to the simulated CRM of the package
// github.com/leadonce/leadonce/crmsim, by its wire protocol alone. It is also
// the model for connectors to real CRMs.
//
// What an answer proves, and nothing else proves anything:
//
//	created      201 with an id; upsert also 200 with an id
//	exists       409 already_exists, for unique_create: with its id, or when one
//	             lookup before the same deadline finds exactly one lead
//	not applied  429; 503 not_executed
//	refused      422 validation and external_id_missing, 400 malformed, and
//	             409 look_alike: the id in it is of somebody else's lead
//
// 409 idempotency_key_in_use is unknown: an effect under this very key is on
// its way. 422 idempotency_key_reused is unknown too, and says that something
// else bore this operation's key.
//
// The settle time must be at least the instance's Hang and IndexLag together:
// an effect can come so much later than its request, and a lookup miss it so
// much longer.
package crmsim
