package httponce

import (
	"net"
	"syscall"
	"testing"
	"time"
)

// TestKernelDropsUnacknowledged: the kernel knows the deadline, for the case
// that this process does not live to tell it.
func TestKernelDropsUnacknowledged(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dialer := net.Dialer{Control: dropUnacknowledged(1500 * time.Millisecond)}
	conn, err := dialer.DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var milliseconds int
	var failed error
	if err := raw.Control(func(fd uintptr) {
		milliseconds, failed = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout)
	}); err != nil || failed != nil || milliseconds != 1500 {
		t.Fatalf("TCP_USER_TIMEOUT is %d ms, %v, %v", milliseconds, err, failed)
	}
}
