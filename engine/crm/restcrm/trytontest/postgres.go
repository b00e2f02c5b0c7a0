//go:build linux

package trytontest

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Postgres is a running PostgreSQL, with all of a test in one folder.
type Postgres struct {
	dir, tools string
	owner      *syscall.Credential
	port       int
	password   string // of its superuser
}

// Open starts PostgreSQL, and ends it with the test. It installs Debian's packages
// when they are missing and this is root; where they cannot be had, or LEADONCE_TRYTON
// does not ask for it, the test is skipped with the reason.
func Open(t testing.TB) *Postgres {
	t.Helper()
	if os.Getenv("LEADONCE_TRYTON") == "" {
		t.Skip("it takes minutes and Debian's Tryton; run: make tryton")
	}
	if err := install(t.Context()); err != nil {
		t.Skipf("skipped: %v", err)
	}
	p, err := open(t)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func open(t testing.TB) (*Postgres, error) {
	p := &Postgres{password: rand.Text()}
	var err error
	if p.tools, err = postgresTools(); err != nil {
		return nil, err
	}
	if p.owner, err = owner(); err != nil {
		return nil, err
	}
	if p.port, err = freePort(); err != nil {
		return nil, err
	}
	// The folders of t.TempDir are closed to other users.
	if p.dir, err = os.MkdirTemp("", "leadonce-tryton-"); err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = os.RemoveAll(p.dir) })
	if err := p.give(p.dir); err != nil {
		return nil, err
	}
	if err := p.write("superuser", p.password+"\n"); err != nil {
		return nil, err
	}
	data := filepath.Join(p.dir, "data")
	if _, err := p.run(t.Context(), nil, nil, p.tool("initdb"), "-D", data, "-U", "postgres", "-A", "scram-sha-256",
		"--pwfile", filepath.Join(p.dir, "superuser"), "--no-locale", "-E", "UTF8", "--no-sync"); err != nil {
		return nil, err
	}
	// PostgreSQL itself is not killed, so it need not sync.
	server, err := p.launch("postgres", nil, syscall.SIGQUIT, p.tool("postgres"), "-D", data, "-p", fmt.Sprint(p.port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "jit=off")
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { server.end(syscall.SIGQUIT) })
	return p, server.await(t.Context(), func(ctx context.Context) error {
		_, err := p.query(ctx, "postgres", "SELECT 1")
		return err
	})
}

func (p *Postgres) tool(name string) string { return filepath.Join(p.tools, name) }

// query is the answer, a line for a row and tabs between columns.
func (p *Postgres) query(ctx context.Context, database, statement string) (string, error) {
	out, err := p.run(ctx, nil, nil, append([]string{p.tool("psql")}, append(p.at(database), "-XqAt", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-c", statement)...)...)
	return strings.TrimSuffix(out, "\n"), err
}

// at are the flags of PostgreSQL's programs.
func (p *Postgres) at(database string) []string {
	return []string{"-h", "127.0.0.1", "-p", fmt.Sprint(p.port), "-U", "postgres", "-d", database}
}

// write makes a file that PostgreSQL's user alone can read.
func (p *Postgres) write(name, text string) error {
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	return p.give(path)
}

func (p *Postgres) give(path string) error {
	if p.owner == nil {
		return nil
	}
	return os.Chown(path, int(p.owner.Uid), int(p.owner.Gid))
}
