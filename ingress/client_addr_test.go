package ingress_test

import (
	"net/http"
	"net/netip"
	"testing"

	"github.com/leadonce/leadonce/ingress"
)

func TestClientAddr(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, c := range []struct {
		name, remote string
		forwarded    []string
		trusted      []netip.Prefix
		want         string
	}{
		{"no proxy", "203.0.113.9:1234", nil, proxies, "203.0.113.9"},
		{"nobody is trusted", "10.0.0.1:1234", []string{"203.0.113.9"}, nil, "10.0.0.1"},
		{"a stranger claims", "203.0.113.9:1234", []string{"198.51.100.7"}, proxies, "203.0.113.9"},
		{"one proxy", "10.0.0.1:1234", []string{"203.0.113.9"}, proxies, "203.0.113.9"},
		{"two proxies", "10.0.0.1:1234", []string{"203.0.113.9, 10.2.3.4"}, proxies, "203.0.113.9"},
		{"the client lies on the left", "10.0.0.1:1234", []string{"198.51.100.7, 203.0.113.9"}, proxies, "203.0.113.9"},
		{"two lines are one list", "10.0.0.1:1234", []string{"198.51.100.7", "203.0.113.9, 10.2.3.4"}, proxies, "203.0.113.9"},
		{"only proxies", "10.0.0.1:1234", []string{"10.9.9.9, 10.2.3.4"}, proxies, "10.9.9.9"},
		{"rubbish", "10.0.0.1:1234", []string{"203.0.113.9, x, 10.2.3.4"}, proxies, "10.2.3.4"},
		{"no header", "10.0.0.1:1234", nil, proxies, "10.0.0.1"},
		{"IPv6", "[fd00::1]:1234", []string{"2001:db8::9"}, proxies, "2001:db8::9"},
		{"IPv6 with a zone", "[fd00::1%eth0]:1234", []string{"2001:db8::9"}, proxies, "2001:db8::9"},
		{"IPv4 in IPv6", "[::ffff:10.0.0.1]:1234", []string{"203.0.113.9:555"}, proxies, "203.0.113.9"},
		{"no address", "@", []string{"203.0.113.9"}, proxies, "invalid IP"},
	} {
		r := &http.Request{RemoteAddr: c.remote, Header: http.Header{}}
		for _, line := range c.forwarded {
			r.Header.Add("X-Forwarded-For", line)
		}
		if got := ingress.ClientAddr(r, c.trusted).String(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
