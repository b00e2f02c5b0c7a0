package leadonce_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
)

// script is the shell script that a service of docker-compose.yml runs, with the
// places of the container replaced by those of this machine.
func script(t *testing.T, service string, replace ...string) string {
	t.Helper()
	command := readCompose(t).Services[service].Command
	if len(command) != 1 {
		t.Fatalf("%s has no script", service)
	}
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(command[0], replace[i]) {
			t.Fatalf("the script of %s has no %s", service, replace[i])
		}
	}
	return strings.NewReplacer(append(replace, "$$", "$")...).Replace(command[0])
}

// runScript runs it as its service does, and returns what it prints.
func runScript(t *testing.T, text, tool string, env ...string) (output string, err error) {
	t.Helper()
	if _, err := exec.LookPath(tool); err != nil {
		t.Skipf("the script needs %s, which this machine does not have", tool)
	}
	c := exec.Command("sh", "-euc", text)
	c.Env = append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	return string(out), err
}

// certificates makes them as the service certs does.
func certificates(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	text := script(t, "certs", "/var/log/kurrentdb", dir, "/tmp/", t.TempDir()+"/")
	if out, err := runScript(t, text, "openssl"); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	before := readText(t, filepath.Join(dir, "ca/ca.crt"))
	if out, err := runScript(t, text, "openssl"); err != nil || readText(t, filepath.Join(dir, "ca/ca.crt")) != before {
		t.Fatalf("the second run makes others, or fails: %v:\n%s", err, out)
	}
	return dir
}

func TestCertificatesOfTheCluster(t *testing.T) {
	c, dir := readCompose(t), certificates(t)
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM([]byte(readText(t, filepath.Join(dir, "ca/ca.crt")))) {
		t.Fatal("no authority")
	}
	for name, s := range c.nodes() {
		if s.Environment["KURRENTDB_INSECURE"] == "true" {
			continue
		}
		certFile := strings.Replace(s.Environment["KURRENTDB_CERTIFICATE_FILE"], "/certs", dir, 1)
		keyFile := strings.Replace(s.Environment["KURRENTDB_CERTIFICATE_PRIVATE_KEY_FILE"], "/certs", dir, 1)
		pair, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			t.Fatal(err)
		}
		if cn := pair.Leaf.Subject.CommonName; cn != "kurrentdb-node" {
			t.Errorf("%s: the common name is %s; nodes know each other by having the same", name, cn)
		}
		for _, host := range []string{name, "kurrentdb-cluster", "localhost", "127.0.0.1"} {
			for _, use := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
				o := x509.VerifyOptions{Roots: authorities, DNSName: host, KeyUsages: []x509.ExtKeyUsage{use}}
				if _, err := pair.Leaf.Verify(o); err != nil {
					t.Errorf("%s as %s: %v", name, host, err)
				}
			}
		}
	}
	checkKeysAreKept(t, dir)
}

// checkKeysAreKept: only the nodes can read their keys, everybody the authority's
// certificate, and its key is gone.
func checkKeysAreKept(t *testing.T, dir string) {
	t.Helper()
	keys := 0
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := readText(t, name)
		if strings.Contains(text, "PRIVATE KEY") {
			keys++
			if info.Mode().Perm()&0o077 != 0 || strings.Contains(name, "/ca/") {
				t.Errorf("%s (%v) is a key that others can read", name, info.Mode())
			}
		}
		if block, _ := pem.Decode([]byte(text)); strings.HasSuffix(name, "ca.crt") && (block == nil || info.Mode().Perm()&0o004 == 0) {
			t.Errorf("%s (%v) cannot be read by clients", name, info.Mode())
		}
		return nil
	})
	if err != nil || keys != 3 {
		t.Errorf("%d keys, want the three nodes': %v", keys, err)
	}
}

// writeAuthority writes the file of the authority that vouches for the server.
func writeAuthority(t *testing.T, server *httptest.Server) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "ca.crt")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(path, block, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestConnectionsAreTheClients: what .env.example offers is what the client takes.
func TestConnectionsAreTheClients(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	t.Cleanup(server.Close)
	authority := writeAuthority(t, server)
	found := 0
	for line := range strings.Lines(readText(t, ".env.example")) {
		_, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "#"), "KURRENTDB_CONNECTION=")
		if !ok {
			continue
		}
		found++
		text := strings.NewReplacer("'", "", "${KURRENTDB_PASSWORD}", "0123abcd", "/certs/ca/ca.crt", authority).Replace(value)
		c, err := esdb.ParseConnectionString(text)
		if err != nil {
			t.Errorf("%s: %v", value, err)
			continue
		}
		if alone := len(c.GossipSeeds) == 0; alone != c.DisableTLS || alone != (c.RootCAs == nil) || alone != (c.Username == "") {
			t.Errorf("%s: one node is without TLS and users, three are not: %+v", value, c)
		}
	}
	if found != 2 {
		t.Errorf("found %d connections, want two", found)
	}
}

// kurrentUsers is the part of KurrentDB's HTTP API that the service kurrentdb-users
// speaks to. It knows no administrator for its first requests, like a node
// that has only just begun.
type kurrentUsers struct {
	mu       sync.Mutex
	warmUp   int
	password string // of leadonce; "" before it is made
	appended map[string]string
	wrong    []string
}

func (k *kurrentUsers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	user, password, _ := r.BasicAuth()
	if k.warmUp--; k.warmUp >= 0 || user != "admin" || password != "adm1n" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	switch r.Method + " " + r.URL.EscapedPath() {
	case "GET /users/$current":
	case "POST /users":
		if k.password != "" {
			w.WriteHeader(http.StatusConflict)
			return
		}
		w.WriteHeader(http.StatusCreated)
		if _, err := fmt.Sscanf(string(body), `{"LoginName":"leadonce","FullName":"leadonce","Groups":[],"Password":%q}`, &k.password); err != nil {
			k.wrong = append(k.wrong, string(body))
		}
	case "POST /users/leadonce/command/reset-password":
		if _, err := fmt.Sscanf(string(body), `{"NewPassword":%q}`, &k.password); err != nil {
			k.wrong = append(k.wrong, string(body))
		}
	case "POST /streams/%24all/metadata", "POST /streams/%24settings":
		if r.Header.Get("Kurrent-EventId") == "" || r.Header.Get("Kurrent-EventType") == "" || r.Header.Get("Content-Type") != "application/json" {
			k.wrong = append(k.wrong, fmt.Sprint(r.Header))
		}
		k.appended[r.URL.Path] = r.Header.Get("Kurrent-EventType") + " " + strings.Join(strings.Fields(string(body)), "")
		w.WriteHeader(http.StatusCreated)
	default:
		k.wrong = append(k.wrong, r.Method+" "+r.URL.String())
		w.WriteHeader(http.StatusNotFound)
	}
}

func (k *kurrentUsers) seen() (password string, wrong []string, appended map[string]string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.password, slices.Clone(k.wrong), maps.Clone(k.appended)
}

func TestUsersOfTheCluster(t *testing.T) {
	k := &kurrentUsers{warmUp: 2, appended: map[string]string{}}
	server := httptest.NewTLSServer(k)
	t.Cleanup(server.Close)
	authority := writeAuthority(t, server)
	text := script(t, "kurrentdb-users", "https://kurrentdb-1:2113", server.URL, "/certs/ca/ca.crt", authority, "/tmp/", t.TempDir()+"/",
		"sleep 2", "sleep 0.01", "-ge 60", "-ge 5")
	for _, password := range []string{"f1rst", "second"} { // the second replaces it
		out, err := runScript(t, text, "curl", "ADMIN_PASSWORD=adm1n", "USER_PASSWORD="+password)
		set, wrong, _ := k.seen()
		if err != nil || len(wrong) > 0 || set != password {
			t.Fatalf("%v, password %q, not understood: %v, output:\n%s", err, set, wrong, out)
		}
	}
	_, _, appended := k.seen()
	want := map[string]string{
		"/streams/$all/metadata": `$metadata {"$acl":{"$r":["$admins","leadonce"]}}`,
		"/streams/$settings": `update-default-acl {"$userStreamAcl":{"$r":["$admins","leadonce"],"$w":["$admins","leadonce"],"$d":"$admins","$mr":["$admins","leadonce"],"$mw":"$admins"},` +
			`"$systemStreamAcl":{"$r":"$admins","$w":"$admins","$d":"$admins","$mr":"$admins","$mw":"$admins"}}`,
	}
	if !maps.Equal(appended, want) {
		t.Errorf("rights:\n%v, want\n%v", appended, want)
	}
	for _, wrong := range [][]string{{"ADMIN_PASSWORD=other", "USER_PASSWORD=second"}, {"ADMIN_PASSWORD=adm1n", `USER_PASSWORD=a"b`}} {
		out, err := runScript(t, text, "curl", wrong...)
		if err == nil || strings.Contains(out, wrong[1][len("USER_PASSWORD="):]) {
			t.Errorf("%v: %v, output:\n%s", wrong, err, out)
		}
	}
}
