package botapi

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Endpoint is a webhook's address as it is seen from here, for findings about what
// Telegram would stumble over.
type Endpoint struct {
	URL    string
	Bot    int64
	Secret string // sent to URL; empty: none is sent
	Local  bool   // a local Bot API server delivers: any scheme, port and address will do

	// Of the network. Default: the system's.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	Roots   *x509.CertPool
}

// probeTimeout bounds each look.
const probeTimeout = 10 * time.Second

// ports are those that Telegram delivers to.
var ports = []string{"443", "80", "88", "8443"}

// Path is what the address of a bot's webhook ends with.
func Path(bot int64) string { return "/telegram/" + strconv.FormatInt(bot, 10) }

// CheckURL is what is wrong with a webhook's address for Telegram's own servers;
// nil if nothing.
func CheckURL(address string) error {
	if what, mend := faultOf(address); what != "" {
		return fmt.Errorf("%s: %s", what, mend)
	}
	return nil
}

func faultOf(address string) (what, mend string) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Hostname() == "":
		return "it is no URL", "give one such as https://leads.example.com"
	case u.Scheme != "https":
		return "updates are delivered over https only", "give an https address"
	case !slices.Contains(ports, cmp.Or(u.Port(), "443")):
		return "updates are delivered to the ports 443, 80, 88 and 8443 only", "put the proxy on one of them"
	default:
		return "", ""
	}
}

// Look tries the address as Telegram would, and never with a whole update: nothing
// is stored by it.
func (e Endpoint) Look(ctx context.Context) []Finding {
	u, err := url.Parse(e.URL)
	if err != nil || u.Hostname() == "" {
		what, mend := faultOf(e.URL)
		return []Finding{problem("address", mend, "%s", what)}
	}
	findings := []Finding{e.path(u)}
	if !e.Local {
		if what, mend := faultOf(e.URL); what != "" {
			findings = append(findings, problem("address", mend, "%s", what))
		}
		findings = append(findings, e.addresses(ctx, u.Hostname()))
	}
	trusted := true
	if u.Scheme == "https" {
		f := e.certificate(ctx, u)
		findings, trusted = append(findings, f), f.Level == Fine
	}
	if trusted {
		findings = append(findings, e.answers(ctx)...)
	}
	return findings
}

func (e Endpoint) path(u *url.URL) Finding {
	if strings.HasSuffix(u.Path, Path(e.Bot)) {
		return fine("path", "it ends with %s", Path(e.Bot))
	}
	return problem("path", "set an address that ends with "+Path(e.Bot)+", or see that the proxy makes it so", "it ends with something else than %s", Path(e.Bot))
}

func (e Endpoint) addresses(ctx context.Context, host string) Finding {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	resolve := e.Resolve
	if resolve == nil {
		resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	found, err := resolve(ctx, host)
	if err != nil || len(found) == 0 {
		return problem("host", "make an A record for it", "its name leads nowhere")
	}
	public := false
	for _, a := range found {
		if a = a.Unmap(); !a.Is4() {
			continue
		}
		if a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsUnspecified() || a.IsMulticast() {
			return problem("host", "make an A record with the server's public address", "its name leads to %s, which is a private address", a)
		}
		public = true
	}
	if !public {
		return problem("host", "make an A record for it", "it has IPv6 addresses only, and Telegram uses IPv4")
	}
	return fine("host", "it has a public IPv4 address")
}

// certificate judges the chain that the server sends as one who keeps no
// intermediate certificates of others, like Telegram.
func (e Endpoint) certificate(ctx context.Context, u *url.URL) Finding {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	c, err := e.dial(ctx, "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443")))
	if err != nil {
		return problem("connection", "see that the server listens there; Telegram may see it differently", "it is not reached from here: %s", describe(err))
	}
	defer c.Close()
	// Judged below, to say more than that it is bad. Nothing is sent.
	t := tls.Client(c, &tls.Config{ServerName: u.Hostname(), InsecureSkipVerify: true})
	if err := t.HandshakeContext(ctx); err != nil {
		return problem("certificate", "serve TLS 1.2 or newer on that port", "no TLS connection came about: %s", describe(err))
	}
	chain := t.ConnectionState().PeerCertificates
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err = chain[0].Verify(x509.VerifyOptions{DNSName: u.Hostname(), Roots: e.Roots, Intermediates: between})
	return judge(chain, err)
}

func judge(chain []*x509.Certificate, err error) Finding {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case err == nil:
		return fine("certificate", "its chain is complete, and good until %s", chain[0].NotAfter.UTC().Format(time.DateOnly))
	case errors.As(err, &name):
		return problem("certificate", "get one for the host of the address", "it is of another name")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return problem("certificate", "renew it, and let the server read it", "it is expired or not good yet")
	case errors.As(err, &unknown) && string(chain[0].RawIssuer) == string(chain[0].RawSubject):
		return problem("certificate", "get one of a public authority", "it is self-signed")
	case errors.As(err, &unknown) && len(chain) == 1:
		return problem("certificate", "serve the full chain (fullchain.pem instead of cert.pem)", "its chain is incomplete: the server sends its own certificate alone, browsers hide that")
	default:
		return problem("certificate", "serve the full chain (fullchain.pem) of a public authority", "its chain leads to no authority that is known: an intermediate one is missing, or the authority is private")
	}
}

func (e Endpoint) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if e.Dial != nil {
		return e.Dial(ctx, network, address)
	}
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// answers posts nothing, first without the secret and then with it. leadonce looks
// at the secret before the body.
func (e Endpoint) answers(ctx context.Context) []Finding {
	const restart = "restart the process with the configuration that is checked here, or give it the same secret"
	status, err := e.post(ctx, "")
	if err != nil {
		return []Finding{problem("connection", "see that the server listens there; Telegram may see it differently", "it is not reached from here: %s", describe(err))}
	}
	if status != http.StatusUnauthorized {
		x := Explain("wrong response: " + strconv.Itoa(status))
		if status/100 == 2 || status == http.StatusBadRequest {
			x = Explanation{"it takes deliveries without a secret, from anyone: this is not leadonce, or a proxy adds the secret", "set the address of leadonce"}
		}
		return []Finding{problem("answer", x.Mend, "HTTP %d: %s", status, x.Meaning)}
	}
	findings := []Finding{fine("answer", "it refuses deliveries without the secret")}
	if e.Secret == "" {
		return findings
	}
	switch status, err = e.post(ctx, e.Secret); {
	case err != nil:
		return append(findings, problem("secret", "try again", "no answer: %s", describe(err)))
	case status == http.StatusUnauthorized:
		return append(findings, problem("secret", restart, "the process that runs there has another secret than this configuration"))
	case status == http.StatusBadRequest:
		return append(findings, fine("secret", "it takes the configured one"))
	default:
		return append(findings, problem("secret", "see the log of leadonce", "HTTP %d to an empty delivery with the secret, want 400", status))
	}
}

func (e Endpoint) post(ctx context.Context, secret string) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, http.NoBody)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	if secret != "" {
		r.Header.Set("X-Telegram-Bot-Api-Secret-Token", secret)
	}
	transport := &http.Transport{DialContext: e.dial, TLSClientConfig: &tls.Config{RootCAs: e.Roots}, DisableKeepAlives: true}
	response, err := transport.RoundTrip(r) // follows no redirect
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}
