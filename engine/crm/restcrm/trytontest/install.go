//go:build linux

package trytontest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// packages are Debian's.
var packages = []string{"tryton-server", "tryton-modules-sale-opportunity", "python3-psycopg2", "postgresql"}

// install sees to it that the packages are there, as far as this user may.
func install(ctx context.Context) error {
	if installed(ctx) {
		return nil
	}
	command := "apt-get install -y --no-install-recommends " + strings.Join(packages, " ")
	if _, err := exec.LookPath("apt-get"); err != nil {
		return errors.New("no Tryton here, and no apt-get that could install it")
	}
	if os.Geteuid() != 0 {
		return errors.New("no Tryton here; run as root: " + command)
	}
	for _, c := range []string{"apt-get update", command} {
		words := strings.Fields(c)
		apt := exec.CommandContext(ctx, words[0], append([]string{"-q", "-o", "DPkg::Lock::Timeout=120"}, words[1:]...)...)
		apt.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := apt.CombinedOutput(); err != nil {
			return fmt.Errorf("cannot install Tryton: %s: %w: %s", c, err, lastLine(out))
		}
	}
	if !installed(ctx) {
		return errors.New("parts of Tryton are still missing after: " + command)
	}
	return nil
}

func installed(ctx context.Context) bool {
	out, err := exec.CommandContext(ctx, "dpkg-query", append([]string{"-W", "-f", "${db:Status-Status}\n"}, packages...)...).Output()
	return err == nil && strings.Count(string(out), "installed\n") == len(packages) && !strings.Contains(string(out), "not-installed")
}

// postgresTools is the folder of the newest PostgreSQL's programs.
func postgresTools() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) == 0 {
		return "", errors.New("no PostgreSQL below /usr/lib/postgresql")
	}
	slices.Sort(found)
	return filepath.Dir(found[len(found)-1]), nil
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}
