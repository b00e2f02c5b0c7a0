package kurrentdb

import (
	"fmt"
	"time"
)

// Config says where the log is. Connection is required; every other field left
// zero has its default.
type Config struct {
	// Connection is a connection string of the client: esdb://host:2113,
	// esdb://node1:2113,node2:2113,node3:2113 or esdb+discover://name:2113, with
	// user:password@ and ?tls=true&tlsCaFile=….
	Connection string

	// Namespace separates logs that share a cluster: the stream s is kept as
	// "<namespace>.s". Up to 40 of A-Z, a-z, 0-9 and _; empty for none.
	Namespace string

	// Streams are the prefixes of the streams that belong to the log; others are
	// refused, since no subscription would show them. Default: those of the engine and
	// of the readiness probe. One empty prefix stands for every stream of the namespace.
	Streams []string

	// Connections is how many appends and pages of a read run at the same time,
	// each on a connection of its own; more of them wait. Connections are made as
	// they are needed, and a subscription has one beside these. Default 64.
	Connections int

	// AppendTimeout is for one attempt to append. Default 5 s.
	AppendTimeout time.Duration

	// ReadTimeout is for one page of a read. Default 10 s.
	ReadTimeout time.Duration

	// SettleTimeout is how long an append or a read goes on after its first
	// failure: to find out what became of the append, or to outlast a change of
	// leader. Then it says "unknown" or "unavailable". Default 5 s.
	SettleTimeout time.Duration

	// Watchdog is after how much silence a subscription looks at the log's tail
	// for what it was not told of. Default 15 s.
	Watchdog time.Duration

	// ResumeTimeout is how long a subscription that hears nothing resumes by
	// itself before it returns eventlog.ErrUnavailable. Default 1 min.
	ResumeTimeout time.Duration

	// MaxAppendBytes bounds data and metadata of one append; the server's
	// --max-append-size must not be less. Default 8 MiB.
	MaxAppendBytes int

	// Observe, if not nil, is told what the adapter does by itself. It must
	// return soon and may be called from several goroutines at a time.
	Observe func(Notice)
}

// Check returns what is wrong with Connection, Namespace or Streams, in one line
// without the password. It connects to nothing.
func (c Config) Check() error {
	if _, err := newNamespace(c.withDefaults()); err != nil {
		return err
	}
	_, err := clientConfig(c.Connection)
	return err
}

func (c Config) withDefaults() Config {
	orElse := func(d *time.Duration, otherwise time.Duration) {
		if *d <= 0 {
			*d = otherwise
		}
	}
	orElse(&c.AppendTimeout, 5*time.Second)
	orElse(&c.ReadTimeout, 10*time.Second)
	orElse(&c.SettleTimeout, 5*time.Second)
	orElse(&c.Watchdog, 15*time.Second)
	orElse(&c.ResumeTimeout, time.Minute)
	if c.Connections <= 0 {
		c.Connections = 64
	}
	if c.MaxAppendBytes <= 0 {
		c.MaxAppendBytes = 8 << 20
	}
	if len(c.Streams) == 0 {
		c.Streams = []string{"update-", "operation-", "chat-", "series-", "reply-", "bot-", "readiness-probe"}
	}
	if c.Observe == nil {
		c.Observe = func(Notice) {}
	}
	return c
}

// Kind is what a Notice is about.
type Kind int

const (
	Connected  Kind = iota + 1 // a connection was made
	Dropped                    // a connection was given up; Err says why
	Settling                   // an append on Stream did not get its answer; Err says why
	Subscribed                 // a subscription begins behind Position
	CaughtUp                   // a subscription has handed over all there was, up to Position
	FellBehind                 // a subscription reads from the log again, since it was too slow
	Resuming                   // a subscription was dropped behind Position; Err says why
	Stalled                    // a subscription was silent though there are events behind Position
)

func (k Kind) String() string {
	names := [...]string{"", "connected", "dropped", "settling", "subscribed", "caught up", "fell behind", "resuming", "stalled"}
	if k < Connected || int(k) >= len(names) {
		return fmt.Sprintf("kind %d", int(k))
	}
	return names[k]
}

// Notice is what Config.Observe is told.
type Notice struct {
	Kind     Kind
	Stream   string
	Position string // of a subscription; empty otherwise
	Err      error
}
