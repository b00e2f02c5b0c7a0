package restcrm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Store keeps the refresh tokens of connectors, by the connector's name. What it
// keeps is secret.
type Store interface {
	// Load is what was saved last; nil when nothing was.
	Load(name string) ([]byte, error)
	// Save replaces it. When it returns nil, the value outlives a loss of power.
	Save(name string, value []byte) error
}

// FileStore is a Store of one file per connector in a folder. Its files are
// readable by their owner alone. Two processes may read it; if both refresh a
// token that is good for one use, one of them has to be authorized anew.
type FileStore struct{ Dir string }

func (s FileStore) path(name string) string { return filepath.Join(s.Dir, name+".token.json") }

// Load reads the file.
func (s FileStore) Load(name string) ([]byte, error) {
	value, err := os.ReadFile(s.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("load the tokens of %s: %w", name, err)
	}
	return value, nil
}

// Save writes a new file, syncs it, puts it in the old one's place and syncs the
// folder.
func (s FileStore) Save(name string, value []byte) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("save the tokens of %s: %w", name, err)
		}
	}()
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(s.Dir, name+".*.tmp") // which is 0600
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // of no effect once it is renamed
	if err := errors.Join(write(file, value), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), s.path(name)); err != nil {
		return err
	}
	dir, err := os.Open(s.Dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func write(file *os.File, value []byte) error {
	if _, err := file.Write(value); err != nil {
		return err
	}
	return file.Sync()
}
