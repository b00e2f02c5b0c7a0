package ingress

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ClientAddr is the sender's address, for logs only. What a proxy says of it, in
// X-Forwarded-For, is believed only from a trusted one: the answer is the
// right-most address there that is not a trusted proxy's own. It is the zero
// Addr when there is none.
func ClientAddr(r *http.Request, trusted []netip.Prefix) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	addr := peer.Addr().Unmap()
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		if !within(addr, trusted) {
			break
		}
		next, ok := parseHop(hop)
		if !ok {
			break // what is left of it is nobody's word
		}
		addr = next
	}
	return addr
}

func within(addr netip.Addr, prefixes []netip.Prefix) bool {
	addr = addr.WithZone("") // a prefix contains no address with a zone
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// parseHop reads an address, with or without a port.
func parseHop(s string) (netip.Addr, bool) {
	s = strings.TrimSpace(s)
	if addr, err := netip.ParseAddr(s); err == nil {
		return addr.Unmap(), true
	}
	if pair, err := netip.ParseAddrPort(s); err == nil {
		return pair.Addr().Unmap(), true
	}
	return netip.Addr{}, false
}
