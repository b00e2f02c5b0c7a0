package main

import (
	"encoding/pem"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

// composeService is what the program must understand of docker-compose.yml; the
// rest of that file is looked at in the root's tests.
type composeService struct {
	Build           string            `yaml:"build"`
	StopGracePeriod string            `yaml:"stop_grace_period"`
	Command         []string          `yaml:"command"`
	Environment     map[string]string `yaml:"environment"`
	Healthcheck     struct {
		Test []string `yaml:"test"`
	} `yaml:"healthcheck"`
}

// ofCompose is docker-compose.yml: the services that run leadonce, and the
// configuration that they are given.
func ofCompose(t *testing.T) (services map[string]composeService, configuration string) {
	t.Helper()
	var file struct {
		Services map[string]composeService `yaml:"services"`
		Configs  map[string]struct {
			Content string `yaml:"content"`
		} `yaml:"configs"`
	}
	if err := yaml.Unmarshal([]byte(rootFile(t, "docker-compose.yml")), &file); err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(file.Services, func(_ string, s composeService) bool { return s.Build == "" })
	if len(file.Services) != 5 {
		t.Fatalf("found %d services, want two ingresses, two workers and crmsim", len(file.Services))
	}
	return file.Services, file.Configs["leadonce"].Content
}

func rootFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// interpolated is a text as docker compose hands it to a container.
func interpolated(text string, variables map[string]string) string {
	return regexp.MustCompile(`\$\$|\$\{([A-Z_]+)(?::([-?])([^}]*))?\}`).ReplaceAllStringFunc(text, func(ref string) string {
		if ref == "$$" {
			return "$"
		}
		name, rest, _ := strings.Cut(strings.Trim(ref, "${}"), ":")
		value := variables[name]
		if standard, ok := strings.CutPrefix(rest, "-"); ok && value == "" {
			value = standard
		}
		return value
	})
}

// TestProgramTakesTheConfigurationOfCompose: strictly read and checked, for each
// role, with each connection of .env.example.
func TestProgramTakesTheConfigurationOfCompose(t *testing.T) {
	services, content := ofCompose(t)
	connections := regexp.MustCompile(`(?m)^#?KURRENTDB_CONNECTION='?(esdb[^'\n]+)'?$`).FindAllStringSubmatch(rootFile(t, ".env.example"), -1)
	if len(connections) != 2 {
		t.Fatalf("found %d connections in .env.example", len(connections))
	}
	known := map[string]bool{"LEADONCE_CONFIG": true}
	for _, o := range overridable {
		known[o.env()] = true
	}
	for name, s := range services {
		for key, value := range s.Environment {
			if strings.HasPrefix(key, "LEADONCE_") && !known[key] {
				t.Errorf("%s: the program does not know %s", name, key)
			}
			t.Setenv(key, interpolated(value, map[string]string{"TELEGRAM_WEBHOOK_SECRET": secret, "KURRENTDB_PASSWORD": "0123abcd"}))
		}
	}
	authority := filepath.Join(t.TempDir(), "ca.crt")
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, m := range connections {
		m[1] = strings.ReplaceAll(m[1], "/certs/ca/ca.crt", authority)
		text := interpolated(content, map[string]string{"KURRENTDB_CONNECTION": m[1], "TELEGRAM_BOT_ID": "700000001"})
		path := filepath.Join(t.TempDir(), "leadonce.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, role := range []string{roleIngress, roleWorker} {
			c, err := readConfig(path, map[string]string{"role": role})
			if err == nil {
				err = c.check()
			}
			if err != nil {
				t.Errorf("%s over %s: %v", role, m[1], err)
			}
			k, err := c.cluster()
			if want := strings.ReplaceAll(m[1], "${KURRENTDB_PASSWORD}", "0123abcd"); c.Log != logKurrentDB || k.Connection != want || err != nil {
				t.Errorf("%s uses the log %s at %s, error %v", role, c.Log, k.Connection, err)
			}
		}
	}
}

// checkCommand runs the arguments as far as their own checks.
func checkCommand(t *testing.T, where string, args []string) {
	t.Helper()
	c, rest, err := newRoot().Find(args)
	if err == nil {
		err = c.ParseFlags(rest)
	}
	if err == nil {
		err = c.Args(c, c.Flags().Args())
	}
	if err != nil || c.Run == nil && c.RunE == nil || !c.HasParent() {
		t.Errorf("%s: the program does not take %q: %v", where, args, err)
	}
}

func TestProgramTakesTheCommandsOfCompose(t *testing.T) {
	services, _ := ofCompose(t)
	roles := map[string]int{}
	for name, s := range services {
		checkCommand(t, name, s.Command)
		probe := s.Healthcheck.Test
		if len(probe) < 3 || probe[0] != "CMD" || probe[1] != "/leadonce" {
			t.Errorf("%s: the image has no program for the healthcheck %q", name, probe)
			continue
		}
		checkCommand(t, name, probe[2:])
		if i := slices.Index(s.Command, "--role"); i > 0 {
			roles[s.Command[i+1]]++
		}
	}
	if roles[roleIngress] != 2 || roles[roleWorker] != 2 {
		t.Errorf("the roles are %v, want two of each", roles)
	}
	dockerfile := rootFile(t, "Dockerfile")
	for _, m := range regexp.MustCompile(`LEADONCE_[A-Z_]+`).FindAllString(dockerfile, -1) {
		if m != "LEADONCE_CONFIG" && !slices.ContainsFunc(overridable, func(o override) bool { return o.env() == m }) {
			t.Errorf("the Dockerfile sets %s, which the program does not know", m)
		}
	}
}

// TestContainersMayFinish: Docker kills a container that takes longer to stop.
func TestContainersMayFinish(t *testing.T) {
	services, content := ofCompose(t)
	c := defaultConfig()
	if err := decodeStrict(document{name: "docker-compose.yml", data: []byte(interpolated(content, map[string]string{"TELEGRAM_BOT_ID": "1"}))}, &c); err != nil {
		t.Fatal(err)
	}
	needs := c.CallTimeout + c.policy().LeaseMargin()
	for name, s := range services {
		if patience, err := time.ParseDuration(s.StopGracePeriod); err != nil || patience < needs+10*time.Second {
			t.Errorf("%s is killed after %s (%v), and may need %s and some to close its files", name, s.StopGracePeriod, err, needs)
		}
	}
}
