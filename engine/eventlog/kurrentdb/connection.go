package kurrentdb

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
)

// settings are the keys that the client knows in a connection string, and what a
// value of each must be; nil: anything. The client only prints a line about other
// keys, and says of a wrong value no more than that something is wrong.
var settings = map[string]func(value string) error{
	"tls": truth, "tlsverifycert": truth,
	"tlscafile": readable, "usercertfile": readable, "userkeyfile": readable,
	"discoveryinterval": number, "gossiptimeout": number, "maxdiscoverattempts": number,
	"keepaliveinterval": number, "keepalivetimeout": number,
	"nodepreference": nil,
}

func truth(value string) error {
	if value != "true" && value != "false" {
		return errors.New("give true or false")
	}
	return nil
}

func number(value string) error {
	if _, err := strconv.Atoi(value); err != nil {
		return errors.New("give a whole number")
	}
	return nil
}

func readable(value string) error {
	f, err := os.Open(value)
	if err != nil {
		return err
	}
	return f.Close()
}

const form = "esdb://[user:password@]host:port[,host:port]…[?key=value&…]"

// clientConfig reads the connection string and sets what must not be left to
// it: one attempt of discovery, since this package does the repeating; the leader,
// since only there every acknowledged event is seen (H5); and no logger, since
// the client's writes to the process's output. It takes the server's newer names of
// the scheme, kurrentdb and kurrentdb+discover, too.
func clientConfig(connection string) (*esdb.Configuration, error) {
	if rest, ok := strings.CutPrefix(connection, "kurrentdb"); ok {
		connection = "esdb" + rest
	}
	if err := checkConnection(connection); err != nil {
		return nil, fmt.Errorf("connection string: %w", err)
	}
	c, err := esdb.ParseConnectionString(connection)
	if err != nil { // the client's own error can quote the password
		return nil, errors.New("connection string: not of the form " + form)
	}
	switch {
	case c.NodePreference != esdb.NodePreferenceLeader:
		return nil, fmt.Errorf("connection string: nodePreference is %s, but only the leader shows every acknowledged event; leave it out", c.NodePreference)
	case c.KeepAliveInterval < 0:
		return nil, errors.New("connection string: keepAliveInterval is off, and a dead connection would never be found out; leave it out")
	case c.GossipTimeout < 1:
		return nil, errors.New("connection string: gossipTimeout is in seconds and at least 1")
	case c.DisableTLS && c.Username != "":
		return nil, errors.New("connection string: a login is sent over TLS only; set tls=true, or leave the login out")
	}
	c.MaxDiscoverAttempts = 1
	c.DiscoveryInterval = 0
	c.Logger = esdb.NoopLogging()
	return c, nil
}

// checkConnection finds what the client would not name.
func checkConnection(connection string) error {
	scheme, rest, found := strings.Cut(connection, "://")
	if !found || scheme != "esdb" && scheme != "esdb+discover" {
		return errors.New("not of the form " + form)
	}
	authority, query, _ := strings.Cut(rest, "?")
	switch {
	case strings.Count(authority, "@") > 1:
		return errors.New("more than one @: write one in the password as %40")
	case strings.Contains(query, "@"): // so a part of the password may stand there
		return errors.New("a @ behind the ?: write a ? in the password as %3F")
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return errors.New("what follows the ? is not of the form key=value&key=value")
	}
	given := map[string]bool{}
	for key, list := range values {
		if err := checkSetting(key, list); err != nil {
			return err
		}
		given[strings.ToLower(key)] = true
	}
	if given["usercertfile"] != given["userkeyfile"] {
		return errors.New("userCertFile and userKeyFile go together; give both or none")
	}
	return nil
}

func checkSetting(key string, list []string) error {
	check, known := settings[strings.ToLower(key)]
	switch {
	case !known:
		return fmt.Errorf("unknown setting %q", key)
	case len(list) > 1:
		return fmt.Errorf("setting %q is there %d times", key, len(list))
	case check == nil:
		return nil
	}
	if err := check(list[0]); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// hosts is the connection without what is secret about it.
func hosts(c *esdb.Configuration) string {
	var list []string
	for _, seed := range c.GossipSeeds {
		list = append(list, seed.String())
	}
	return cmp.Or(strings.Join(list, ","), c.Address)
}
