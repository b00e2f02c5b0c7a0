//go:build linux

package trytontest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// startTimeout is how long a process may take until it answers; loaded machines are
// slow.
const startTimeout = time.Minute

// process is a server that runs until it is ended, or this program is.
type process struct {
	cmd   *exec.Cmd
	log   string        // file of its output
	ended chan struct{} // closed when it has
}

func (p *Postgres) launch(name string, env []string, ending syscall.Signal, args ...string) (*process, error) {
	log := filepath.Join(p.dir, name+".log")
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := p.command(context.Background(), env, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr.Pdeathsig = ending
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	running := &process{cmd, log, make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ends does not matter, or is told by its log
		close(running.ended)
	}()
	return running, nil
}

// end sends the signal and waits.
func (r *process) end(s os.Signal) {
	_ = r.cmd.Process.Signal(s) // one that is gone is told by ended
	<-r.ended
}

// await asks until there is no error, the process has ended or it takes too long.
func (r *process) await(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w; see %s", r.cmd.Path, err, r.log)
		case <-r.ended:
			said, _ := os.ReadFile(r.log)
			return fmt.Errorf("%s has ended: %s", r.cmd.Path, lastLine(said))
		}
	}
}

// command is a program as the user whom PostgreSQL runs as; it does not run as root.
func (p *Postgres) command(ctx context.Context, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = p.dir
	cmd.Env = append(append(os.Environ(), "PGPASSWORD="+p.password, "HOME="+p.dir), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.owner}
	return cmd
}

// run runs a program to its end and returns what it printed.
func (p *Postgres) run(ctx context.Context, env []string, stdin []byte, args ...string) (string, error) {
	cmd := p.command(ctx, env, args...)
	var out, failure bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &failure
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", filepath.Base(args[0]), err, lastLine(failure.Bytes()))
	}
	return out.String(), nil
}

// owner is the user postgres for root, and nil, for no change, for others.
func owner() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		return nil, err
	}
	uid, errUID := strconv.ParseUint(account.Uid, 10, 32)
	gid, errGID := strconv.ParseUint(account.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(errUID, errGID)
}

// freePort is one that nobody listens on now.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
