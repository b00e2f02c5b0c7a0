package httponce

import (
	"syscall"
	"time"
)

// tcpUserTimeout is TCP_USER_TIMEOUT of tcp(7), which package syscall lacks.
const tcpUserTimeout = 0x12

// dropUnacknowledged makes the kernel give up what the peer has not
// acknowledged after the time that is left. A kernel that refuses is no reason
// not to send: the settle time is the safety, this makes it honest.
func dropUnacknowledged(left time.Duration) func(network, address string, c syscall.RawConn) error {
	milliseconds := int(max(left.Milliseconds(), 1))
	return func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, milliseconds)
		})
	}
}
