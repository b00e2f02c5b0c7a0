package ingress

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// ServerConfig is what a server is made of. A duration or size left zero has its
// default.
type ServerConfig struct {
	Address string // host:port

	// CertFile and KeyFile are PEM files, read again when they change. Telegram
	// delivers over HTTPS only, to ports 443, 80, 88 and 8443. Both empty: plain
	// HTTP, behind a proxy that ends TLS.
	CertFile, KeyFile string

	ReadHeaderTimeout time.Duration // default 5 s
	ReadTimeout       time.Duration // for headers and body; default 10 s
	WriteTimeout      time.Duration // from the headers to the answer's end; default 55 s
	IdleTimeout       time.Duration // between two requests; default 120 s
	MaxHeaderBytes    int           // default 16 KiB

	Logger *slog.Logger // default: none
}

// Server is an http.Server with every limit set. It speaks HTTP/1.1 only, as
// Telegram does: there each limit is one connection's, and a sender that is slow
// holds up nobody else.
func Server(c ServerConfig, h http.Handler) (*http.Server, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	s := &http.Server{
		Addr: c.Address, Handler: h,
		ReadHeaderTimeout: orDefault(c.ReadHeaderTimeout, 5*time.Second),
		ReadTimeout:       orDefault(c.ReadTimeout, 10*time.Second),
		WriteTimeout:      orDefault(c.WriteTimeout, 55*time.Second),
		IdleTimeout:       orDefault(c.IdleTimeout, 120*time.Second),
		MaxHeaderBytes:    orDefault(c.MaxHeaderBytes, 16<<10),
		Protocols:         new(http.Protocols),
		ErrorLog:          slog.NewLogLogger(c.Logger.Handler(), slog.LevelInfo),
	}
	s.Protocols.SetHTTP1(true)
	if (c.CertFile == "") != (c.KeyFile == "") {
		return nil, errors.New("TLS needs both a certificate file and a key file: set both or neither")
	}
	if c.CertFile == "" {
		return s, nil
	}
	certificate, err := loadCertificate(c.CertFile, c.KeyFile, c.Logger)
	if err != nil {
		return nil, err
	}
	s.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate.get}
	return s, nil
}

func orDefault[T ~int | ~int64](value, standard T) T {
	if value <= 0 {
		return standard
	}
	return value
}

// Serve serves on l, with TLS if s has a certificate, until s is shut down: then
// it returns nil.
func Serve(s *http.Server, l net.Listener) error {
	var err error
	if s.TLSConfig != nil {
		err = s.ServeTLS(l, "", "")
	} else {
		err = s.Serve(l)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
