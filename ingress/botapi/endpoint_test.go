package botapi_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/ingress/botapi"
)

const host = "leads.example.com"

// authority is one certificate with its key.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// issue makes a certificate that parent signs; nil: itself.
func issue(t *testing.T, name string, parent *authority, isCA bool, until time.Time) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: until.Add(-1000 * time.Hour), NotAfter: until, BasicConstraintsValid: true, IsCA: isCA, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	signer := authority{c, key}
	if parent != nil {
		signer = *parent
	}
	der, err := x509.CreateCertificate(rand.Reader, c, signer.certificate, &key.PublicKey, signer.key)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return authority{c, key}
}

// serveTLS serves h with the leaf and what it sends after it.
func serveTLS(t *testing.T, h http.Handler, leaf authority, sent ...authority) string {
	t.Helper()
	chain := tls.Certificate{PrivateKey: leaf.key, Certificate: [][]byte{leaf.certificate.Raw}}
	for _, c := range sent {
		chain.Certificate = append(chain.Certificate, c.certificate.Raw)
	}
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{chain}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// leadonce answers an empty delivery as the webhook's handler does.
func leadonce(secret string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/telegram/424242":
			w.WriteHeader(404)
		case r.Header.Get("X-Telegram-Bot-Api-Secret-Token") != secret:
			w.WriteHeader(401)
		default:
			w.WriteHeader(400)
		}
	})
}

// at is a webhook of the host that is really at addr.
func at(addr string, roots *x509.CertPool, found ...string) botapi.Endpoint {
	return botapi.Endpoint{
		URL: "https://" + host + "/telegram/424242", Bot: 424242, Secret: "good", Roots: roots,
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		},
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			var list []netip.Addr
			for _, f := range found {
				list = append(list, netip.MustParseAddr(f))
			}
			return list, nil
		},
	}
}

// problems are the findings that matter, in one text.
func problems(t *testing.T, e botapi.Endpoint) string {
	t.Helper()
	var text strings.Builder
	for _, f := range e.Look(t.Context()) {
		if f.Level == botapi.Problem {
			text.WriteString(f.Subject + ": " + f.What + "; " + f.Mend + "\n")
		}
	}
	return text.String()
}

func TestCertificateChains(t *testing.T) {
	soon, past := time.Now().Add(100*time.Hour), time.Now().Add(-time.Hour)
	root := issue(t, "root", nil, true, soon)
	between := issue(t, "between", &root, true, soon)
	leaf := issue(t, host, &between, false, soon)
	stranger := issue(t, "stranger", nil, true, soon)
	roots := x509.NewCertPool()
	roots.AddCert(root.certificate)
	for name, c := range map[string]struct {
		leaf authority
		sent []authority
		want string // nothing: no problem
	}{
		"complete":             {leaf, []authority{between}, ""},
		"complete with root":   {leaf, []authority{between, root}, ""},
		"alone":                {leaf, nil, "its chain is incomplete"},
		"root but not between": {leaf, []authority{root}, "leads to no authority"},
		"private authority":    {issue(t, host, &stranger, false, soon), []authority{stranger}, "leads to no authority"},
		"self-signed":          {issue(t, host, nil, false, soon), nil, "self-signed"},
		"expired":              {issue(t, host, &between, false, past), []authority{between}, "expired"},
		"of another name":      {issue(t, "other.example.com", &between, false, soon), []authority{between}, "of another name"},
	} {
		t.Run(name, func(t *testing.T) {
			got := problems(t, at(serveTLS(t, leadonce("good"), c.leaf, c.sent...), roots, "203.0.113.7"))
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("problems %q, want %q", got, c.want)
			}
			if c.want != "" && strings.Count(got, "\n") != 1 {
				t.Errorf("problems %q, want one: nothing is asked over a connection that is not trusted", got)
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	soon := time.Now().Add(100 * time.Hour)
	root := issue(t, "root", nil, true, soon)
	leaf := issue(t, host, &root, false, soon)
	roots := x509.NewCertPool()
	roots.AddCert(root.certificate)
	addr := serveTLS(t, leadonce("good"), leaf)
	good := at(addr, roots, "203.0.113.7", "2001:db8::7")
	if got := problems(t, good); got != "" {
		t.Errorf("problems of a good one: %s", got)
	}
	with := func(change func(*botapi.Endpoint)) botapi.Endpoint { e := good; change(&e); return e }
	for want, e := range map[string]botapi.Endpoint{
		"IPv6 addresses only":        at(addr, roots, "2001:db8::7"),
		"leads nowhere":              at(addr, roots),
		"private address":            at(addr, roots, "10.0.0.7"),
		"127.0.0.1, which":           at(addr, roots, "203.0.113.7", "127.0.0.1"),
		"ports 443, 80, 88":          with(func(e *botapi.Endpoint) { e.URL = "https://" + host + ":9443/telegram/424242" }),
		"over https only":            with(func(e *botapi.Endpoint) { e.URL = "http://" + host + "/telegram/424242" }),
		"something else than":        with(func(e *botapi.Endpoint) { e.URL = "https://" + host + "/hook" }),
		"has another secret":         with(func(e *botapi.Endpoint) { e.Secret = "another" }),
		"nothing under that path":    with(func(e *botapi.Endpoint) { e.URL = "https://" + host + "/x/telegram/424242" }),
		"without a secret, from any": at(serveTLS(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), leaf), roots, "203.0.113.7"),
		"redirects":                  at(serveTLS(t, http.RedirectHandler("/login", http.StatusFound), leaf), roots, "203.0.113.7"),
		"not reached from here":      at("127.0.0.1:1", roots, "203.0.113.7"),
		"it is no URL":               with(func(e *botapi.Endpoint) { e.URL = "x" }),
	} {
		if got := problems(t, e); !strings.Contains(got, want) {
			t.Errorf("problems %q, want %q", got, want)
		}
	}
	local := with(func(e *botapi.Endpoint) { e.Local, e.URL = true, "https://"+host+":9443/telegram/424242" })
	if got := problems(t, local); got != "" {
		t.Errorf("problems with a local Bot API server: %s", got)
	}
}

// The secret goes to no address that it was not meant for.
func TestNoSecretIsSentWithoutBeingTold(t *testing.T) {
	sent := make(chan string, 10)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent <- r.Header.Get("X-Telegram-Bot-Api-Secret-Token")
		w.WriteHeader(401)
	})
	server := httptest.NewServer(h)
	defer server.Close()
	e := botapi.Endpoint{URL: server.URL + "/telegram/424242", Bot: 424242, Local: true}
	if got := problems(t, e); got != "" {
		t.Errorf("problems %s", got)
	}
	e.Secret = "good"
	problems(t, e)
	if a, b, c := <-sent, <-sent, <-sent; a != "" || b != "" || c != "good" {
		t.Errorf("sent %q, %q, %q", a, b, c)
	}
}
