package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/kurrentdb"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/engine/eventlog/sqlite"
	"github.com/leadonce/leadonce/projections"
)

// This file chooses the adapters; no other one names them.

// Files in the data folder.
const (
	logFile      = "log.db"
	modelsFile   = "projections.db"
	snapshotFile = "agenda.json"
	tokensFolder = "tokens"
	recordFolder = "certifications"
)

// openLog opens the log that the configuration names, and returns how to close
// it. create says whether a log that is not there may be made.
func openLog(ctx context.Context, c config, create bool, logger *slog.Logger) (eventlog.Log, func() error, error) {
	if c.Log == logKurrentDB {
		k, err := c.cluster()
		if err != nil {
			return nil, nil, c.sources.place(err)
		}
		return openKurrentDB(ctx, k, logger)
	}
	if c.Log == logMemory && !create {
		return nil, nil, mistake("log: memory can be seen by its own `leadonce serve` only; give sqlite")
	}
	if c.Log == logMemory {
		return memory.New(), func() error { return nil }, nil
	}
	path := filepath.Join(c.DataDir, logFile)
	if _, err := os.Stat(path); err != nil && !create {
		return nil, nil, mistake("%s: no log there; name the folder of a running leadonce with --data-dir, or start one with `leadonce serve`", path)
	}
	if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
		return nil, nil, c.sources.place(wrong("data_dir", "%v; give a folder that can be written", err))
	}
	l, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return nil, nil, err
	}
	return l, l.Close, nil
}

// lacksLog reports whether openLog would make a log that is kept.
func (c config) lacksLog() bool {
	if c.Log != logSQLite {
		return false
	}
	_, err := os.Stat(filepath.Join(c.DataDir, logFile))
	return errors.Is(err, fs.ErrNotExist)
}

// openKurrentDB connects to the cluster; c has the environment's values. What the
// connection goes through is told in the log of the program.
func openKurrentDB(ctx context.Context, c kurrentConfig, logger *slog.Logger) (eventlog.Log, func() error, error) {
	if err := checkKurrentDB(c); err != nil {
		return nil, nil, err
	}
	notices := noticeLog{logger: logger, told: map[kurrentdb.Kind]time.Time{}}
	l, err := kurrentdb.Open(ctx, kurrentdb.Config{Connection: c.Connection, Namespace: c.Namespace, Observe: notices.tell})
	if err != nil {
		return nil, nil, err
	}
	return l, l.Close, nil
}

// checkKurrentDB finds the mistakes that can be found without the cluster.
func checkKurrentDB(c kurrentConfig) error {
	if err := (kurrentdb.Config{Connection: c.Connection, Namespace: c.Namespace}).Check(); err != nil {
		return wrong("kurrentdb", "%v; mend connection and namespace as `leadonce init` explains them", err)
	}
	return nil
}

// noticeLog tells each kind of trouble once in a while: while a cluster is away, there
// is some several times a second.
type noticeLog struct {
	logger *slog.Logger
	mu     sync.Mutex
	told   map[kurrentdb.Kind]time.Time
}

const noticeEvery = 30 * time.Second

func (n *noticeLog) tell(notice kurrentdb.Notice) {
	level := slog.LevelDebug
	switch notice.Kind {
	case kurrentdb.Dropped, kurrentdb.Settling, kurrentdb.Resuming, kurrentdb.Stalled:
		if n.due(notice.Kind, time.Now()) {
			level = slog.LevelWarn
		}
	}
	var about []any
	if notice.Stream != "" {
		about = append(about, "stream", notice.Stream)
	}
	if notice.Position != "" {
		about = append(about, "position", notice.Position)
	}
	if notice.Err != nil {
		about = append(about, "error", notice.Err)
	}
	n.logger.Log(context.Background(), level, "kurrentdb: "+notice.Kind.String(), about...)
}

func (n *noticeLog) due(kind kurrentdb.Kind, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now.Sub(n.told[kind]) < noticeEvery {
		return false
	}
	n.told[kind] = now
	return true
}

// newConnector is the CRM that the configuration names: one of the descriptions that
// come with the program, or a file.
func newConnector(c config) (*restcrm.Connector, error) {
	d, err := describedCRM(c.CRM.Connector)
	if err != nil {
		return nil, err
	}
	if c.CRM.URL == "" && !d.HasURL() {
		return nil, wrong("crm.url", giveAddress)
	}
	return restcrm.New(d, restcrm.Config{
		BaseURL: c.CRM.URL, Class: crm.Class(c.CRM.Class), Settle: c.CRM.Settle, KeyValidity: c.CRM.KeyValidity,
		Vars: c.CRM.Vars, Store: restcrm.FileStore{Dir: filepath.Join(c.DataDir, tokensFolder)},
	})
}

// identity is what a certificate is about: a connector that is described alike, in the
// same class and with the same times, at a CRM on the same host.
type identity struct{ digest, host string }

func identify(c *restcrm.Connector) identity { return identity{c.Digest(), c.Base().Host} }

// clearText is a warning when something secret goes over the network unencrypted; ""
// when nothing does.
func clearText(c *restcrm.Connector) string {
	if base := c.Base(); c.SendsSecret() && base.Scheme == "http" && !onLoopback(base) {
		return fmt.Sprintf("the CRM's address is http at %s: what proves who sends goes there unencrypted, and so does every lead; give an https address", base.Host)
	}
	return ""
}

func describedCRM(name string) (*restcrm.Definition, error) {
	if filepath.Ext(name) == ".yaml" {
		d, err := readFile(name, "give the path of a description, or one of "+strings.Join(restcrm.Shipped(), ", "))
		if err != nil {
			return nil, wrong("crm.connector", "%v", err)
		}
		return restcrm.Load(name, d.data)
	}
	if !slices.Contains(restcrm.Shipped(), name) {
		return nil, wrong("crm.connector", "%q is unknown, give a file such as crm.yaml, or one of %s", name, strings.Join(restcrm.Shipped(), ", "))
	}
	return restcrm.LoadShipped(name)
}

// openModels opens the read models. Those of the memory log live as long as it.
func openModels(ctx context.Context, c config, options projections.Options) (*projections.Store, func() error, error) {
	dir, remove := c.DataDir, func() error { return nil }
	if c.Log == logMemory {
		var err error
		if dir, err = os.MkdirTemp("", "leadonce-"); err != nil {
			return nil, nil, fmt.Errorf("open the read models: %w", err)
		}
		remove = func() error { return os.RemoveAll(dir) }
	}
	s, err := projections.Open(ctx, filepath.Join(dir, modelsFile), options)
	if err != nil {
		return nil, nil, err
	}
	return s, func() error {
		if err := s.Close(); err != nil {
			return err
		}
		return remove()
	}, nil
}
