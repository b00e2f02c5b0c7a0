package leadonce_test

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// kurrentdbOptions are the options of KurrentDB that its services here set, as
// ClusterVNodeOptions and LoggingOptions of the pinned version name them. The
// server does not start with one that it does not know.
var kurrentdbOptions = []string{
	"ALLOW_ANONYMOUS_ENDPOINT_ACCESS", "CERTIFICATE_FILE", "CERTIFICATE_PRIVATE_KEY_FILE", "CLUSTER_SIZE",
	"DEFAULT_ADMIN_PASSWORD", "DEFAULT_OPS_PASSWORD", "DISABLE_LOG_FILE", "DISCOVER_VIA_DNS", "ENABLE_ATOM_PUB_OVER_HTTP",
	"GOSSIP_SEED", "INSECURE", "MAX_APPEND_EVENT_SIZE", "MAX_APPEND_SIZE", "MEM_DB", "NODE_HOST_ADVERTISE_AS", "NODE_IP",
	"NODE_PORT", "REPLICATION_HOST_ADVERTISE_AS", "REPLICATION_IP", "TELEMETRY_OPTOUT", "TRUSTED_ROOT_CERTIFICATES_PATH",
}

// nodes are the services that are a KurrentDB.
func (c composeFile) nodes() map[string]composeService {
	nodes := maps.Clone(c.Services)
	maps.DeleteFunc(nodes, func(_ string, s composeService) bool { return s.Environment["KURRENTDB_CLUSTER_SIZE"] == "" })
	return nodes
}

func TestComposeSetsUpKurrentDB(t *testing.T) {
	c := readCompose(t)
	nodes := c.nodes()
	if len(nodes) != 4 {
		t.Fatalf("found %d nodes, want one alone and three together", len(nodes))
	}
	cluster := slices.DeleteFunc(slices.Sorted(maps.Keys(nodes)), func(n string) bool { return n == "kurrentdb" })
	for name, s := range nodes {
		for key := range s.Environment {
			if option, ok := strings.CutPrefix(key, "KURRENTDB_"); !ok || !slices.Contains(kurrentdbOptions, option) {
				t.Errorf("%s: %s is no option of KurrentDB", name, key)
			}
		}
		appends, err1 := strconv.Atoi(s.Environment["KURRENTDB_MAX_APPEND_SIZE"])
		event, err2 := strconv.Atoi(s.Environment["KURRENTDB_MAX_APPEND_EVENT_SIZE"])
		if err1 != nil || err2 != nil || appends < 8<<20 || event <= eventlog.MaxData || event > appends {
			t.Errorf("%s takes appends of %d bytes with events of %d, want 8 MiB or more, and an event of MaxData with its metadata", name, appends, event)
		}
		if s.Environment["KURRENTDB_MEM_DB"] != "false" || len(s.Volumes) == 0 {
			t.Errorf("%s does not keep the log", name)
		}
		if !slices.Equal(s.networks(), []string{"log"}) || len(s.Ports) > 0 {
			t.Errorf("%s can be reached from outside: networks %v, ports %v", name, s.networks(), s.Ports)
		}
		advertised := s.Environment["KURRENTDB_NODE_HOST_ADVERTISE_AS"]
		if advertised != name {
			t.Errorf("%s tells clients to come to %q", name, advertised)
		}
		if alone := name == "kurrentdb"; alone != (s.Environment["KURRENTDB_CLUSTER_SIZE"] == "1") || alone != (s.Environment["KURRENTDB_INSECURE"] == "true") {
			t.Errorf("%s: one alone is without TLS and users, three together are not", name)
		}
		if name == "kurrentdb" {
			continue
		}
		others := slices.DeleteFunc(slices.Clone(cluster), func(n string) bool { return n == name })
		if want := strings.Join(others, ":2113,") + ":2113"; s.Environment["KURRENTDB_GOSSIP_SEED"] != want {
			t.Errorf("%s looks for its peers at %s, want %s", name, s.Environment["KURRENTDB_GOSSIP_SEED"], want)
		}
		if key := s.Environment["KURRENTDB_CERTIFICATE_PRIVATE_KEY_FILE"]; path.Base(path.Dir(key)) != name {
			t.Errorf("%s has the key of another: %s", name, key)
		}
	}
}

func TestDockerfileBuildsWhatMakeBuilds(t *testing.T) {
	dockerfile := readText(t, "Dockerfile")
	line := func(pattern, in string) string {
		t.Helper()
		m := regexp.MustCompile(pattern).FindStringSubmatch(in)
		if m == nil {
			t.Fatalf("nothing matches %s", pattern)
		}
		return m[1]
	}
	want := line(`(?m)^go (\d+\.\d+)\.\d+$`, readText(t, "go.mod"))
	if got := line(`FROM \S* ?golang:(\d+\.\d+)\.`, dockerfile); got != want {
		t.Errorf("the Dockerfile builds with Go %s, go.mod wants %s", got, want)
	}
	flags := `go build (.*?)-o`
	if got, want := line(flags, dockerfile), line(flags, readText(t, "Makefile")); got != want {
		t.Errorf("the Dockerfile builds with %q, the Makefile with %q", got, want)
	}
	if !strings.Contains(dockerfile, "CGO_ENABLED=0") {
		t.Error("the binary is not static, and the image has no libraries")
	}
	if user := line(`(?m)^USER (\S+)$`, dockerfile); !regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`).MatchString(user) {
		t.Errorf("the image's user is %s, want one by number that is not root", user)
	}
	if !strings.Contains(dockerfile, `HEALTHCHECK`) || !strings.Contains(dockerfile, `CMD ["/leadonce", "health"]`) {
		t.Error("the image does not know its health")
	}
}

// TestImageGetsWhatItNeeds: everything is kept from the build but what is named.
func TestImageGetsWhatItNeeds(t *testing.T) {
	rules := strings.Fields(regexp.MustCompile(`(?m)^#.*$`).ReplaceAllString(readText(t, ".dockerignore"), ""))
	if rules[0] != "*" {
		t.Fatal("the .dockerignore does not begin with nothing")
	}
	need := []string{"!go.mod", "!go.sum", "!**/*.go"}
	embed := regexp.MustCompile(`(?m)^//go:embed (\S+)$`)
	walk(t, ".go", func(name string) {
		for _, m := range embed.FindAllStringSubmatch(readText(t, name), -1) {
			need = append(need, "!"+path.Join(path.Dir(name), m[1]))
		}
	})
	for _, n := range need {
		if !slices.Contains(rules, n) {
			t.Errorf("the build needs %s in .dockerignore", n)
		}
	}
	for _, r := range rules[1:] {
		if strings.HasPrefix(r, "!") && !slices.Contains(need, r) {
			t.Errorf(".dockerignore lets %s through, which the build does not need", r)
		}
	}
	if len(need) < 5 {
		t.Errorf("found %v: the search is broken", need)
	}
}
