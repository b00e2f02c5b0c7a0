package ingress

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// checkEvery is how often, at most, the certificate's files are looked at.
const checkEvery = time.Second

// certificate is a pair of PEM files and what was last read from them. A renewed
// certificate is used without a restart.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger
	now               func() time.Time

	mu      sync.Mutex
	checked time.Time
	stamp   stamp
	loaded  *tls.Certificate
}

// stamp tells whether files changed.
type stamp struct {
	certTime, keyTime time.Time
	certSize, keySize int64
}

func loadCertificate(certFile, keyFile string, log *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log, now: time.Now}
	c.checked = c.now()
	if err := c.load(); err != nil {
		return nil, fmt.Errorf("TLS certificate %s with key %s: %w", certFile, keyFile, err)
	}
	return c, nil
}

// get is for tls.Config.GetCertificate. While the files do not hold a pair, the
// one read before is used.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if now.Sub(c.checked) < checkEvery {
		return c.loaded, nil
	}
	c.checked = now
	if err := c.load(); err != nil {
		c.log.Warn("the TLS certificate could not be read again: the old one stays in use",
			slog.String("cert_file", c.certFile), slog.String("error", err.Error()))
	}
	return c.loaded, nil
}

// load reads the pair if its files changed since it was read.
func (c *certificate) load() error {
	cert, err := os.Stat(c.certFile)
	if err != nil {
		return err
	}
	key, err := os.Stat(c.keyFile)
	if err != nil {
		return err
	}
	s := stamp{cert.ModTime(), key.ModTime(), cert.Size(), key.Size()}
	if s == c.stamp {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return err
	}
	c.loaded, c.stamp = &pair, s
	return nil
}
