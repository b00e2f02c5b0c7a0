//go:build unix

package peers

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// cluster is a PostgreSQL of this run alone.
type cluster struct {
	dir  string // the socket's too
	port int
}

// startTimeout bounds initdb, the start and the stop, each.
const startTimeout = 30 * time.Second

// startCluster makes and starts one, and stops it when the benchmark ends. It
// skips where PostgreSQL is not installed.
func startCluster(b *testing.B) *cluster {
	b.Helper()
	bin := programs()
	if bin == "" {
		b.Skip("the peers need PostgreSQL: run `apt-get install -y postgresql`; found no initdb in /usr/lib/postgresql/*/bin and PATH")
	}
	owner := clusterOwner(b)
	dir, err := os.MkdirTemp("", "peers-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	c := &cluster{dir: dir, port: freePort(b)}
	if owner != nil {
		if err := os.Chown(dir, int(owner.Uid), int(owner.Gid)); err != nil {
			b.Fatal(err)
		}
	}
	data := filepath.Join(dir, "data")
	initdb := command(owner, filepath.Join(bin, "initdb"), "-D", data, "--auth=trust", "--username=peers", "--encoding=UTF8", "--locale=C")
	if out, err := initdb.CombinedOutput(); err != nil {
		b.Fatalf("initdb: %v\n%s", err, out)
	}
	var said strings.Builder
	server := command(owner, filepath.Join(bin, "postgres"), "-D", data, "-k", dir, "-p", strconv.Itoa(c.port), "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=300")
	server.Stdout, server.Stderr = &said, &said
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGINT) // fast shutdown; one that is gone says so in Wait
		if err := server.Wait(); err != nil {
			b.Errorf("postgres: %v\n%s", err, said.String())
		}
	})
	c.await(b)
	return c
}

// programs is the folder of the newest PostgreSQL; empty if there is none.
func programs() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is correct
	slices.SortFunc(found, func(x, y string) int { return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)) })
	if len(found) > 0 {
		return filepath.Dir(found[len(found)-1])
	}
	initdb, err := exec.LookPath("initdb")
	if err != nil {
		return ""
	}
	return filepath.Dir(initdb)
}

// clusterOwner is whom to run as; nil for whoever runs this.
func clusterOwner(b *testing.B) *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		b.Skip("PostgreSQL does not run as root, and there is no user postgres: run this as another user")
	}
	uid, _ := strconv.ParseUint(u.Uid, 10, 32) // numbers, on unix
	gid, _ := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func command(owner *syscall.Credential, name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Dir = "/" // a folder that the owner may enter
	c.Env = append(os.Environ(), "LC_ALL=C")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: owner, Setpgid: true} // not in reach of Ctrl-C, which would end it before its cleanup
	c.WaitDelay = startTimeout
	return c
}

func freePort(b *testing.B) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// socket is the connection string over a Unix socket.
func (c *cluster) socket() string { return c.at(c.dir) }

// loopback is the connection string over TCP.
func (c *cluster) loopback() string { return c.at("127.0.0.1") }

func (c *cluster) at(host string) string {
	return fmt.Sprintf("host=%s port=%d user=peers dbname=postgres sslmode=disable", host, c.port)
}

// await returns when the server answers, and checks that it is durable.
func (c *cluster) await(b *testing.B) {
	ctx, cancel := context.WithTimeout(b.Context(), startTimeout)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, c.socket())
		if err == nil {
			defer conn.Close(ctx)
			var version, fsync, synchronous string
			err := conn.QueryRow(ctx, "SELECT current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit')").
				Scan(&version, &fsync, &synchronous)
			if err != nil {
				b.Fatal(err)
			}
			if fsync != "on" || synchronous != "on" {
				b.Fatalf("fsync %s, synchronous_commit %s: want both on", fsync, synchronous)
			}
			b.Logf("PostgreSQL %s, synchronous_commit %s", version, synchronous)
			return
		}
		select {
		case <-ctx.Done():
			b.Fatalf("postgres does not answer: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
