// Package restcrm is the connector to any CRM with a REST interface, which a
// YAML file describes. SHAPE.md says how to write one; those of connectors/ are
// in the binary.
//
//	Load        document → Definition: strict, every expression compiled
//	New         Definition + Config → Connector, and one for each of its steps
//	exchange    session → gate → one request → rules
//
// What holds of every description, whatever it says:
//
//   - A create without a rule that matches is Unknown, a lookup without one is an
//     error, and so is a condition that cannot be evaluated before one that would
//     match. A created lead has an id and a 2xx status.
//   - At most one request of a Create can make a lead. A session that is refused
//     is renewed for the next attempt.
//   - Expressions cannot loop in loops, keep variables or make ranges: their cost
//     is bounded by their size times that of the answer.
//   - Reasons are fixed words of this package and of the file, which may not have
//     holes. Secrets come from the environment.
//   - Requests leave by httponce, over HTTP/1.1 or HTTP/2.
package restcrm
