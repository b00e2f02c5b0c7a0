package ingress

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestEveryLimitIsSet(t *testing.T) {
	s, err := Server(ServerConfig{Address: "127.0.0.1:8443"}, http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	if s.Addr != "127.0.0.1:8443" || s.ReadHeaderTimeout == 0 || s.ReadTimeout == 0 || s.IdleTimeout == 0 || s.MaxHeaderBytes == 0 {
		t.Errorf("a limit is missing: %+v", s)
	}
	if s.WriteTimeout <= s.ReadTimeout || s.WriteTimeout >= time.Minute {
		t.Errorf("an answer may take %s, want less than Telegram's minute", s.WriteTimeout)
	}
	if s.Protocols.HTTP2() || s.TLSConfig != nil {
		t.Error("more than plain HTTP/1.1 without a certificate")
	}
}

func TestHalfACertificateIsRefused(t *testing.T) {
	for _, c := range []ServerConfig{
		{CertFile: "cert.pem"}, {KeyFile: "key.pem"},
		{CertFile: filepath.Join(t.TempDir(), "cert.pem"), KeyFile: filepath.Join(t.TempDir(), "key.pem")},
	} {
		if _, err := Server(c, nil); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: error %v, want one line", c, err)
		}
	}
}

// start serves until the test ends.
func start(t *testing.T, c ServerConfig, h http.Handler) (addr string) {
	t.Helper()
	s, err := Server(c, h)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- Serve(s, l) }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

func TestHeadersAreLimited(t *testing.T) {
	addr := start(t, ServerConfig{ReadHeaderTimeout: 200 * time.Millisecond, MaxHeaderBytes: 1 << 10}, http.NotFoundHandler())
	for name, request := range map[string]string{
		"too many":   "GET / HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 16<<10) + "\r\n\r\n",
		"unfinished": "GET / HTTP/1.1\r\nHost: x\r\n",
	} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, request); err != nil {
			t.Fatal(err)
		}
		answer, err := bufio.NewReader(c).ReadString('\n')
		if ne, ok := err.(net.Error); ok && ne.Timeout() {
			t.Errorf("%s: the connection stays open", name)
		}
		if answer != "" && !strings.Contains(answer, " 431 ") {
			t.Errorf("%s: answered %q", name, answer)
		}
	}
}

func TestRenewedCertificateIsUsedWithoutARestart(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	written := time.Now().Add(-time.Hour)
	writePair(t, cert, key, 1, written)
	var lines strings.Builder
	now := time.Now()
	c, err := loadCertificate(cert, key, slog.New(slog.NewTextHandler(&lines, nil)))
	if err != nil {
		t.Fatal(err)
	}
	c.now = func() time.Time { return now }
	serial := func() string {
		t.Helper()
		pair, err := c.get(nil)
		if err != nil {
			t.Fatal(err)
		}
		return pair.Leaf.SerialNumber.String()
	}
	if serial() != "1" {
		t.Error("not the first certificate")
	}
	writePair(t, cert, key, 2, written.Add(time.Minute))
	if serial() != "1" {
		t.Error("the files are looked at again within a second")
	}
	now = now.Add(2 * checkEvery)
	if serial() != "2" {
		t.Error("not the renewed certificate")
	}
	if err := os.WriteFile(cert, []byte("half a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * checkEvery)
	if serial() != "2" || !strings.Contains(lines.String(), "stays in use") {
		t.Errorf("a broken file: serial %s, logged %q", serial(), lines.String())
	}
	writePair(t, cert, key, 3, written.Add(2*time.Minute))
	now = now.Add(2 * checkEvery)
	if serial() != "3" {
		t.Error("a mended file is not read again")
	}
}

func TestServesTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writePair(t, cert, key, 7, time.Now())
	addr := start(t, ServerConfig{CertFile: cert, KeyFile: key}, Router(Config{}))
	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	answer, err := client.Get(fmt.Sprintf("https://%s/healthz", addr))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != 200 || answer.ProtoMajor != 1 || answer.TLS.PeerCertificates[0].SerialNumber.String() != "7" {
		t.Errorf("status %d over %s", answer.StatusCode, answer.Proto)
	}
	old, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
	if err == nil {
		old.Close()
		t.Error("TLS 1.1 is spoken")
	}
}

// writePair writes a self-signed certificate and its key.
func writePair(t *testing.T, cert, key string, serial int64, modified time.Time) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "bots.example.com"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: signed}, key: {Type: "PRIVATE KEY", Bytes: encoded}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, modified, modified); err != nil {
			t.Fatal(err)
		}
	}
}
