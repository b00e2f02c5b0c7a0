package leadonce_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// composeFile is what these tests look at in docker-compose.yml. Docker itself
// checks the rest of it: docker compose config.
type composeFile struct {
	text     string
	Services map[string]composeService `yaml:"services"`
	Networks map[string]struct {
		Internal bool `yaml:"internal"`
	} `yaml:"networks"`
	Volumes map[string]any `yaml:"volumes"`
	Configs map[string]struct {
		Content string `yaml:"content"`
	} `yaml:"configs"`
}

type composeService struct {
	Image           string            `yaml:"image"`
	Build           string            `yaml:"build"`
	User            string            `yaml:"user"`
	ReadOnly        bool              `yaml:"read_only"`
	CapDrop         []string          `yaml:"cap_drop"`
	SecurityOpt     []string          `yaml:"security_opt"`
	Restart         string            `yaml:"restart"`
	StopGracePeriod string            `yaml:"stop_grace_period"`
	Entrypoint      []string          `yaml:"entrypoint"`
	Command         []string          `yaml:"command"`
	Environment     map[string]string `yaml:"environment"`
	Ports           []string          `yaml:"ports"`
	Networks        any               `yaml:"networks"` // a list, or a mapping
	NetworkMode     string            `yaml:"network_mode"`
	Volumes         []string          `yaml:"volumes"`
	Configs         []struct {
		Source string `yaml:"source"`
	} `yaml:"configs"`
	DependsOn map[string]struct {
		Condition string `yaml:"condition"`
	} `yaml:"depends_on"`
	Healthcheck struct {
		Test []string `yaml:"test"`
	} `yaml:"healthcheck"`
}

// once says that the service does its work and ends.
func (s composeService) once() bool { return s.Restart == "no" }

// networks are those that it is on.
func (s composeService) networks() []string {
	var list []string
	switch on := s.Networks.(type) {
	case []any:
		for _, n := range on {
			list = append(list, fmt.Sprint(n))
		}
	case map[string]any:
		list = slices.Sorted(maps.Keys(on))
	}
	return list
}

func readCompose(t *testing.T) composeFile {
	t.Helper()
	c := composeFile{text: readText(t, "docker-compose.yml")}
	if err := yaml.Unmarshal([]byte(c.text), &c); err != nil {
		t.Fatal(err)
	}
	if len(c.Services) < 12 || len(c.Configs) < 3 {
		t.Fatalf("found %d services and %d configs: the reading is broken", len(c.Services), len(c.Configs))
	}
	return c
}

func readText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// pinned is an image by tag and digest.
var pinned = regexp.MustCompile(`^[a-z0-9./-]+:([\w.-]+)@sha256:[0-9a-f]{64}$`)

func checkPinned(t *testing.T, where, image string) {
	t.Helper()
	if m := pinned.FindStringSubmatch(image); m == nil || m[1] == "latest" {
		t.Errorf("%s: the image %s has no tag and digest that stay what they are", where, image)
	}
}

func TestImagesArePinned(t *testing.T) {
	for name, s := range readCompose(t).Services {
		if s.Build == "" {
			checkPinned(t, name, s.Image)
		}
	}
	bases := regexp.MustCompile(`(?m)^FROM (?:--\S+ )*(\S+)`).FindAllStringSubmatch(readText(t, "Dockerfile"), -1)
	for _, m := range bases {
		checkPinned(t, "Dockerfile", m[1])
	}
	if len(bases) != 2 {
		t.Errorf("the Dockerfile has %d stages, want one that builds and one that runs", len(bases))
	}
}

func TestComposeNamesWhatThereIs(t *testing.T) {
	c := readCompose(t)
	used := map[string]bool{}
	use := func(service, kind, name string, declared bool) {
		used[kind+" "+name] = true
		if !declared {
			t.Errorf("%s: the %s %s is not declared", service, kind, name)
		}
	}
	for name, s := range c.Services {
		for _, v := range s.Volumes {
			source, _, _ := strings.Cut(v, ":")
			_, ok := c.Volumes[source]
			use(name, "volume", source, ok)
		}
		for _, f := range s.Configs {
			_, ok := c.Configs[f.Source]
			use(name, "config", f.Source, ok)
		}
		for _, n := range s.networks() {
			_, ok := c.Networks[n]
			use(name, "network", n, ok)
		}
		if len(s.networks()) == 0 && s.NetworkMode != "none" {
			t.Errorf("%s is on no network of this file", name)
		}
	}
	var declared []string
	for n := range c.Volumes {
		declared = append(declared, "volume "+n)
	}
	for n := range c.Configs {
		declared = append(declared, "config "+n)
	}
	for n := range c.Networks {
		declared = append(declared, "network "+n)
	}
	for _, d := range declared {
		if !used[d] {
			t.Errorf("the %s is used by nobody", d)
		}
	}
}

func TestComposeStartsInOrder(t *testing.T) {
	c := readCompose(t)
	for name, s := range c.Services {
		if !s.once() {
			if len(s.Healthcheck.Test) == 0 || s.Restart != "unless-stopped" || s.StopGracePeriod == "" {
				t.Errorf("%s: a service that stays needs a healthcheck, restart: unless-stopped and a stop_grace_period", name)
			}
		}
		for other, d := range s.DependsOn {
			o, ok := c.Services[other]
			switch {
			case !ok:
				t.Errorf("%s depends on %s, which is no service", name, other)
			case d.Condition == "service_healthy" && len(o.Healthcheck.Test) > 0:
			case d.Condition == "service_completed_successfully" && o.once():
			default:
				t.Errorf("%s waits for %s to be %s, which never comes true", name, other, d.Condition)
			}
		}
	}
}

var composeVariable = regexp.MustCompile(`\$\$|\$\{?([A-Za-z_][A-Za-z0-9_]*)`)

// exampleVariables are those of .env.example, with their values; those whose line
// is a comment have to be given.
func exampleVariables(t *testing.T) map[string]string {
	t.Helper()
	variables := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^#?([A-Z_]+)=(.*)$`).FindAllStringSubmatch(readText(t, ".env.example"), -1) {
		variables[m[1]] = m[2]
	}
	return variables
}

func TestVariablesOfComposeAreExplained(t *testing.T) {
	explained := exampleVariables(t)
	used := map[string]bool{"COMPOSE_PROFILES": true} // by docker compose itself
	for _, m := range composeVariable.FindAllStringSubmatch(readCompose(t).text, -1) {
		if name := m[1]; name != "" {
			used[name] = true
			if _, ok := explained[name]; !ok {
				t.Errorf("docker-compose.yml uses %s, which is not in .env.example", name)
			}
		}
	}
	for name := range explained {
		if !used[name] {
			t.Errorf(".env.example explains %s, which docker-compose.yml does not use", name)
		}
	}
	if !slices.Contains(strings.Fields(readText(t, ".gitignore")), "/.env") {
		t.Error("git does not ignore .env, where the secrets are")
	}
}

var (
	secretName = regexp.MustCompile(`SECRET|PASSWORD|TOKEN`)
	reference  = regexp.MustCompile(`^\$\{[A-Z_]+:\?.+\}$`)
	withLogin  = regexp.MustCompile(`://[^/@\s:]+:([^/@\s]+)@`)
)

// TestComposeHoldsNoSecret: secrets come from .env, and docker compose refuses to
// go on without them.
func TestComposeHoldsNoSecret(t *testing.T) {
	c := readCompose(t)
	found := 0
	for name, s := range c.Services {
		for key, value := range s.Environment {
			if secretName.MatchString(key) {
				found++
				if !reference.MatchString(value) {
					t.Errorf("%s: %s is not ${NAME:?…}", name, key)
				}
			}
		}
	}
	if found < 10 {
		t.Errorf("found %d secrets: the search is broken", found)
	}
	for key, value := range exampleVariables(t) {
		if secretName.MatchString(key) && value != "" {
			t.Errorf(".env.example: %s has a value", key)
		}
	}
	for _, m := range withLogin.FindAllStringSubmatch(c.text+readText(t, ".env.example"), -1) {
		if !strings.HasPrefix(m[1], "$") {
			t.Errorf("a password stands in an address: %s", m[0])
		}
	}
}

func TestComposeGivesNoRights(t *testing.T) {
	c := readCompose(t)
	for name, s := range c.Services {
		if s.User == "" || strings.HasPrefix(s.User, "0") || strings.HasPrefix(s.User, "root") {
			t.Errorf("%s runs as root", name)
		}
		if !slices.Contains(s.CapDrop, "ALL") || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
			t.Errorf("%s: give cap_drop: [ALL] and no-new-privileges", name)
		}
		if s.ReadOnly && len(s.Configs) > 0 {
			t.Errorf("%s: docker compose cannot put a config with content into a read-only root", name)
		}
		for _, p := range s.Ports {
			parts := strings.Split(p, ":")
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s publishes %s beyond loopback", name, p)
			}
			if n, err := strconv.Atoi(parts[len(parts)-1]); err != nil || n < 1024 {
				t.Errorf("%s: %s is a privileged port", name, p)
			}
		}
	}
	if !c.Networks["log"].Internal {
		t.Error("the network of the log has a way out")
	}
}

// listening are the ways in which a port is opened in this file.
var listening = regexp.MustCompile(`(?m)(?:bind |listen: [\d.]*|--listen [\d.]*|--web\.listen-address=[\d.]*|KURRENTDB_NODE_PORT=):?(\d+)$`)

// served are the ports that a service listens on.
func (c composeFile) served(s composeService) []string {
	text := strings.Join(s.Command, "\n")
	for i, arg := range s.Command[:max(0, len(s.Command)-1)] {
		text += "\n" + arg + " " + s.Command[i+1]
	}
	for key, value := range s.Environment {
		text += "\n" + key + "=" + value
	}
	for _, f := range s.Configs {
		text += "\n" + c.Configs[f.Source].Content
	}
	var ports []string
	for _, m := range listening.FindAllStringSubmatch(text, -1) {
		ports = append(ports, m[1])
	}
	return ports
}

var address = regexp.MustCompile(`([a-z][a-z0-9-]*):(\d{4})\b`)

// TestEveryPortIsServed looks at what is published, at the addresses that services
// have of each other, and at what the health checks ask.
func TestEveryPortIsServed(t *testing.T) {
	c := readCompose(t)
	for name, s := range c.Services {
		ports := c.served(s)
		for _, p := range s.Ports {
			if target := p[strings.LastIndex(p, ":")+1:]; !slices.Contains(ports, target) {
				t.Errorf("%s publishes %s and listens on %v", name, target, ports)
			}
		}
		for _, m := range regexp.MustCompile(`(?:127\.0\.0\.1|localhost):(\d+)`).FindAllStringSubmatch(strings.Join(s.Healthcheck.Test, " "), -1) {
			if !slices.Contains(ports, m[1]) {
				t.Errorf("%s: the healthcheck asks port %s, and it listens on %v", name, m[1], ports)
			}
		}
	}
	found := 0
	for _, m := range address.FindAllStringSubmatch(c.text+readText(t, ".env.example"), -1) {
		if s, ok := c.Services[m[1]]; ok {
			found++
			if !slices.Contains(c.served(s), m[2]) {
				t.Errorf("%s is addressed, and %s listens on %v", m[0], m[1], c.served(s))
			}
		} else if m[1] != "localhost" && m[1] != "rsa" { // a key's length
			t.Errorf("%s is addressed, and there is no such service", m[0])
		}
	}
	if found < 20 {
		t.Errorf("found %d addresses: the search is broken", found)
	}
}
