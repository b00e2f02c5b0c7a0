// Package httponce sends one HTTP request, once, before a deadline, and says
// what is proven when no answer came. Connectors that speak HTTP are built on
// it, for net/http alone keeps neither C1 nor C2 of package crm: it replays a
// POST that bears an Idempotency-Key when a reused connection breaks, follows
// redirects with the body, and writes whenever the process happens to run.
//
//   - Every request has a connection of its own, is handed to it once, and has no
//     body to rewind: there is nothing to replay it on or from. Over TLS the server
//     chooses HTTP/2 or HTTP/1.1; without TLS it is HTTP/1.1.
//   - Redirects are answers. Proxies of the environment are not used.
//   - The connection refuses to write once the deadline has passed by the wall
//     clock, so a process that was paused wakes up to a failure, not to a late
//     request. What the pause leaves open is the moment between that check and
//     the system call behind it.
//   - A connection that is given up is reset, so that bytes which wait in the
//     kernel are dropped instead of being sent for minutes; on Linux the kernel
//     also drops them by itself at the deadline (TCP_USER_TIMEOUT), which holds
//     when the process is killed.
//   - The request is not known to what makes the connection: dial, TLS, preface of
//     HTTP/2. A failure up to there, or with no byte written behind it, proves that the
//     request was not sent. Any other failure proves nothing. That a server of HTTP/2
//     says it did not process a stream (GOAWAY, REFUSED_STREAM) is no proof either: a
//     proxy before the CRM may say it of what it passed on.
//
// Reasons in errors are this package's own words: no URL, no header, no body.
package httponce
