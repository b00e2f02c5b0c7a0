// Package ingress is the HTTP side of leadonce: one router over the parts that
// are configured, and the server that carries it.
//
// The parts are made elsewhere and handed in: telegram takes deliveries, metrics
// tells what happened. A new part is one field of Config and one line in Router.
package ingress
