package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/engine/rules"
)

// config is leadonce.yaml. `leadonce init` writes one with every key explained.
type config struct {
	Role           string        `yaml:"role"`
	Listen         string        `yaml:"listen"`
	DataDir        string        `yaml:"data_dir"`
	Log            string        `yaml:"log"`
	KurrentDB      kurrentConfig `yaml:"kurrentdb"`
	Bots           []botConfig   `yaml:"bots"`
	Poll           bool          `yaml:"poll"`
	CRM            crmConfig     `yaml:"crm"`
	Workers        int           `yaml:"workers"`
	Lease          time.Duration `yaml:"lease"`
	CallTimeout    time.Duration `yaml:"call_timeout"`
	Retry          retryConfig   `yaml:"retry"`
	ClockSkew      time.Duration `yaml:"clock_skew"`
	MaxBacklog     int           `yaml:"max_backlog"`
	TLS            tlsConfig     `yaml:"tls"`
	TrustedProxies []string      `yaml:"trusted_proxies"`
	Logging        loggingConfig `yaml:"logging"`
	Rules          []rules.Rule  `yaml:"rules"`
	Reply          replyConfig   `yaml:"reply"`

	rules     *rules.Set                        // of Rules; nil before readConfig
	replies   map[job.ReplyOutcome]*rules.Reply // of Reply
	replyBots []int64                           // those that reply, once checked
	sources   sources                           // none before readConfig
}

// The roles: what a process does.
const (
	roleAll     = "all"
	roleIngress = "ingress" // accepts updates, and makes no leads
	roleWorker  = "worker"  // makes leads, and accepts no updates
)

type kurrentConfig struct {
	Connection string `yaml:"connection"`
	Namespace  string `yaml:"namespace"`
}

type botConfig struct {
	ID      int64    `yaml:"id"`
	Secrets []string `yaml:"secrets"`
}

type crmConfig struct {
	Connector   string            `yaml:"connector"`
	URL         string            `yaml:"url"`
	Class       string            `yaml:"class"`
	Settle      time.Duration     `yaml:"settle"`
	KeyValidity time.Duration     `yaml:"key_validity"`
	Vars        map[string]string `yaml:"vars"`

	// TrustDeclared: the class is taken for true without a certificate.
	TrustDeclared bool `yaml:"trust_declared"`
}

type retryConfig struct {
	Attempts int           `yaml:"attempts"`
	First    time.Duration `yaml:"first"`
	Max      time.Duration `yaml:"max"`
}

type tlsConfig struct {
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
}

type loggingConfig struct {
	Format string `yaml:"format"`
	Level  string `yaml:"level"`
}

// defaultConfig is what a file need not say.
func defaultConfig() config {
	return config{
		Role:        roleAll,
		Listen:      "127.0.0.1:8080",
		DataDir:     "./data",
		Log:         logSQLite,
		Workers:     8,
		Lease:       60 * time.Second,
		CallTimeout: 20 * time.Second,
		Retry:       retryConfig{Attempts: 40, First: time.Second, Max: 10 * time.Minute},
		ClockSkew:   5 * time.Second,
		MaxBacklog:  100_000,
		Logging:     loggingConfig{Format: "text", Level: "info"},
		Reply:       replyConfig{Within: 10 * time.Minute},
	}
}

// policy is the part of the configuration that decisions depend on.
func (c config) policy() job.Policy {
	return job.Policy{
		MaxAttempts: c.Retry.Attempts, RetryFirst: c.Retry.First, RetryMax: c.Retry.Max,
		Lease: c.Lease, CallTimeout: c.CallTimeout, ClockSkew: c.ClockSkew,
	}
}

// plan says what an update asks for.
func (c config) plan() job.Planner {
	if c.rules == nil {
		return job.DefaultPlan
	}
	return c.rules.Plan
}

// configError is a mistake of the person who runs the program: one line that
// names the place and the mend. It ends with exit status 2.
type configError struct {
	key  string // whose value is wrong, such as bots[0].id; "" when the text has the place
	text string
}

func (e *configError) Error() string { return e.text }

func mistake(format string, args ...any) error {
	return &configError{text: fmt.Sprintf(format, args...)}
}

// wrong is a mistake in the value of a key; sources.place adds where that stands.
func wrong(key, format string, args ...any) error {
	return &configError{key, key + ": " + fmt.Sprintf(format, args...)}
}

// readConfig reads the file strictly and lays the environment and then the
// flags over it. It does not check what only `serve` needs: see check.
func readConfig(path string, overrides map[string]string) (config, error) {
	c := defaultConfig()
	d, err := readFile(path, "write one with `leadonce init`, or name another with --config FILE")
	if err != nil {
		return c, err
	}
	c.sources.file = d
	if err := decodeStrict(d, &c); err != nil {
		return c, err
	}
	if err := checkRuleNumbers(path, d.data); err != nil {
		return c, err
	}
	if c.rules, err = compileRules(path, d.data, c.Rules); err != nil {
		return c, err
	}
	if c.replies, err = compileReplies(path, d.data, c.Reply); err != nil {
		return c, err
	}
	for _, o := range overridable {
		value, name := overrides[o.key], "--"+o.flag()
		if value == "" {
			value, name = os.Getenv(o.env()), o.env()
		}
		if value == "" {
			continue
		}
		c.sources.over = append(c.sources.over, laid{o.key, name})
		if err := decodeStrict(document{name: name, data: []byte(o.document(value))}, &c); err != nil {
			return c, err
		}
	}
	return c, nil
}

// override is a key that the environment and a flag can set.
type override struct{ key, usage string }

var overridable = []override{
	{"role", "all, ingress (accepts updates only) or worker (makes leads only)"},
	{"listen", "address to listen on"},
	{"data_dir", "folder of the log and the read models"},
	{"log", "sqlite, memory or kurrentdb"},
	{"kurrentdb.connection", "where KurrentDB is, like esdb://user:${PASSWORD}@host:2113?tls=true"},
	{"kurrentdb.namespace", "one of several logs in a cluster"},
	{"workers", "how many jobs are worked on at the same time"},
	{"logging.format", "text or json"},
	{"logging.level", "debug, info, warn or error"},
}

// env is the environment variable, LEADONCE_DATA_DIR for data_dir.
func (o override) env() string {
	return "LEADONCE_" + strings.ToUpper(strings.ReplaceAll(o.key, ".", "_"))
}

// flag is the flag's name, data-dir for data_dir.
func (o override) flag() string { return strings.NewReplacer("_", "-", ".", "-").Replace(o.key) }

// document is a YAML document that sets the key alone.
func (o override) document(value string) string {
	if o.key != "workers" {
		value = "'" + strings.ReplaceAll(value, "'", "''") + "'"
	}
	parent, child, nested := strings.Cut(o.key, ".")
	if nested {
		return parent + ": {" + child + ": " + value + "}"
	}
	return o.key + ": " + value
}

var reference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand replaces ${NAME} by the environment's value.
func expand(key, value string) (string, error) {
	var missing string
	expanded := reference.ReplaceAllStringFunc(value, func(ref string) string {
		name := ref[2 : len(ref)-1]
		v, ok := os.LookupEnv(name)
		if !ok || v == "" {
			missing = name
		}
		return v
	})
	if missing != "" {
		return "", wrong(key, "the environment variable %s is not set; export it, or write the value", missing)
	}
	return expanded, nil
}

// check makes the configuration ready to serve: it fills in the environment's
// values and returns the first mistake, with its place.
func (c *config) check() error { return c.sources.place(c.verify()) }

func (c *config) verify() error {
	if c.Role != roleAll && c.Role != roleIngress && c.Role != roleWorker {
		return wrong("role", "%q is unknown, give %s, %s or %s", c.Role, roleAll, roleIngress, roleWorker)
	}
	if err := c.checkLog(); err != nil {
		return err
	}
	if _, port, err := net.SplitHostPort(c.Listen); err != nil {
		return wrong("listen", "%q is no address; give HOST:PORT", c.Listen)
	} else if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return wrong("listen", "%q is no port; give 1 to 65535", port)
	}
	if err := c.checkReply(); err != nil {
		return err
	}
	if c.Role == roleWorker {
		c.Bots = nil // their secrets are the ingress's
	} else if err := c.checkBots(); err != nil {
		return err
	}
	if err := c.checkCRM(); err != nil {
		return err
	}
	if c.Workers < 1 || c.Workers > 1000 {
		return wrong("workers", "%d, give 1 to 1000", c.Workers)
	}
	if c.MaxBacklog < 1 {
		return wrong("max_backlog", "%d, give at least 1", c.MaxBacklog)
	}
	if err := c.checkDurations(); err != nil {
		return err
	}
	if err := c.policy().Check(); err != nil {
		key, _, _ := strings.Cut(err.Error(), " ") // which it begins with
		return &configError{key, err.Error()}
	}
	if (c.TLS.CertFile == "") != (c.TLS.KeyFile == "") {
		return wrong("tls", "cert_file and key_file go together; give both or none")
	}
	if c.TLS.CertFile != "" {
		if _, err := tls.LoadX509KeyPair(c.TLS.CertFile, c.TLS.KeyFile); err != nil {
			return wrong("tls", "%v; give a certificate and its key, each a PEM file", err)
		}
	}
	for i, proxy := range c.TrustedProxies {
		if _, err := netip.ParsePrefix(proxy); err != nil {
			return wrong(fmt.Sprintf("trusted_proxies[%d]", i), "%q is not a network; give one such as 10.0.0.0/8", proxy)
		}
	}
	return c.Logging.check()
}

// longest is the longest duration that any key may have: sums of a few of them
// must not overflow.
const longest = 365 * 24 * time.Hour

func (c *config) checkDurations() error {
	for _, d := range []struct {
		key   string
		value time.Duration
	}{
		{"crm.settle", c.CRM.Settle}, {"crm.key_validity", c.CRM.KeyValidity}, {"lease", c.Lease},
		{"call_timeout", c.CallTimeout}, {"retry.first", c.Retry.First}, {"retry.max", c.Retry.Max}, {"clock_skew", c.ClockSkew}, {"reply.within", c.Reply.Within},
	} {
		if d.value > longest {
			return wrong(d.key, "%s, give at most a year (8760h)", d.value)
		}
	}
	return nil
}

var secretForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,256}$`)

// maxSecrets is one in use and one during a rotation.
const maxSecrets = 2

func (c *config) checkBots() error { return c.sources.place(c.verifyBots()) }

func (c *config) verifyBots() error {
	if len(c.Bots) == 0 {
		return wrong("bots", "none; give at least one with an id and a secret")
	}
	seen := map[int64]bool{}
	for i := range c.Bots {
		b := &c.Bots[i]
		key := fmt.Sprintf("bots[%d]", i)
		if c.Poll {
			b.Secrets = nil // they are for deliveries
		}
		switch {
		case b.ID <= 0:
			return wrong(key+".id", "%d, give the number before the colon of the bot's token", b.ID)
		case seen[b.ID]:
			return wrong(key+".id", "%d stands twice; keep one", b.ID)
		case len(b.Secrets) == 0 && !c.Poll:
			return wrong(key+".secrets", "none; Telegram's deliveries must prove themselves, give the webhook's secret_token")
		case len(b.Secrets) > maxSecrets:
			return wrong(key+".secrets", "%d, give at most %d", len(b.Secrets), maxSecrets)
		}
		seen[b.ID] = true
		for j := range b.Secrets {
			at := fmt.Sprintf("%s.secrets[%d]", key, j)
			value, err := expand(at, b.Secrets[j])
			if err != nil {
				return err
			}
			if !secretForm.MatchString(value) {
				return wrong(at, "give 1 to 256 of A-Z a-z 0-9 _ -")
			}
			b.Secrets[j] = value
		}
	}
	return nil
}

func (l loggingConfig) check() error {
	if l.Format != "text" && l.Format != "json" {
		return wrong("logging.format", "%q is unknown, give text or json", l.Format)
	}
	if _, err := l.level(); err != nil {
		return wrong("logging.level", "%q is unknown, give debug, info, warn or error", l.Level)
	}
	return nil
}
