package restcrm

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
)

// Digest tells two connectors apart that may promise different things: it is made
// of the description as it was read, without its comments, of the class, the times and
// the variables in use, and of the path of the CRM's address, which may name a database.
// The host is not in it, unless the description has one, and neither are secrets: of a variable that comes from the environment, or
// whose name says that it is secret, only the name is.
func (c *Connector) Digest() string {
	h := sha256.New()
	c.definition.root.digest(h)
	d := c.description
	fmt.Fprintf(h, "%q %s %s %s\n", c.base.Path, d.Class, d.Settle, d.KeyValidity)
	for _, name := range slices.Sorted(maps.Keys(c.vars)) {
		if setting := c.definition.vars[name]; secrecy.MatchString(name) || setting != nil && setting.hidden() {
			fmt.Fprintf(h, "%s\n", name)
			continue
		}
		fmt.Fprintf(h, "%s %q\n", name, c.vars[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Base is where the CRM is, with a password if the address has one.
func (c *Connector) Base() *url.URL {
	base := *c.base
	return &base
}

// SendsSecret reports whether requests bear something secret: what proves who sends
// them, a password in the address, or a variable that is secret.
func (c *Connector) SendsSecret() bool {
	if kind := c.definition.auth.kind; kind != "" && kind != "none" || c.base.User != nil {
		return true
	}
	for name := range c.vars {
		if setting := c.definition.vars[name]; secrecy.MatchString(name) || setting != nil && setting.hidden() {
			return true
		}
	}
	return false
}

// digest writes the node so that no other is written alike.
func (n *node) digest(w io.Writer) {
	switch n.kind {
	case listKind:
		fmt.Fprintf(w, "[%d\n", len(n.list))
		for _, element := range n.list {
			element.digest(w)
		}
	case mappingKind:
		fmt.Fprintf(w, "{%d\n", len(n.members))
		for _, m := range n.members {
			fmt.Fprintf(w, "%q\n", m.name)
			m.value.digest(w)
		}
	default:
		fmt.Fprintf(w, "%T %q\n", n.scalar, fmt.Sprint(n.scalar))
	}
}
