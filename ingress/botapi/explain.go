package botapi

import "strings"

// Explanation is what a message of Telegram's about a webhook means, and what to do.
type Explanation struct {
	Meaning string `json:"meaning"`
	Mend    string `json:"mend"`
}

// explanations are in the order in which they are tried. The messages are those of
// the open server (WebhookActor.cpp) and, for TLS, of OpenSSL: parts of them, in
// small letters.
var explanations = []struct {
	parts []string // each must be there
	Explanation
}{
	{[]string{"wrong response", ": 401"}, Explanation{"the server refuses the secret", "run `leadonce webhook set`, so that Telegram sends the configured secret; a process that runs with an older configuration must be restarted"}},
	{[]string{"wrong response", ": 404"}, Explanation{"the server has nothing under that path, or not this bot", "the path must end with /telegram/<bot id>, and the bot be in the configuration of the process that runs"}},
	{[]string{"wrong response", ": 405"}, Explanation{"something in front of leadonce takes no POST under that path", "let the proxy pass POST /telegram/ on"}},
	{[]string{"wrong response", ": 403"}, Explanation{"a proxy or firewall refuses Telegram", "let 149.154.160.0/20 and 91.108.4.0/22 in, and no bot protection stand before /telegram/"}},
	{[]string{"wrong response", ": 400"}, Explanation{"leadonce took the body for no update, or a proxy spoke HTTPS to a port of plain HTTP", "see the log of leadonce for deliveries with the result bad, and the proxy's scheme towards leadonce"}},
	{[]string{"wrong response", ": 410"}, Explanation{"a server says that the address is gone; after 23 hours of it Telegram removes the webhook", "leadonce never answers 410: point the proxy at leadonce, and set the webhook again if it is gone"}},
	{[]string{"wrong response", ": 413"}, Explanation{"a proxy refuses the size of the body", "let bodies of 1 MiB through (nginx: client_max_body_size)"}},
	{[]string{"wrong response", ": 429"}, Explanation{"a proxy limits the rate of deliveries", "exempt /telegram/ from the limit, or give a lower --max-connections"}},
	{[]string{"wrong response", ": 30"}, Explanation{"the server redirects, and Telegram does not follow", "set the address at which the redirect ends, with its host, scheme and slashes"}},
	{[]string{"wrong response", ": 503"}, Explanation{"leadonce cannot store updates now, or the proxy does not reach it", "see `leadonce health` and its log for why: a full disk, an unreachable log or a full backlog; nothing is lost"}},
	{[]string{"wrong response", ": 502"}, Explanation{"the proxy does not reach leadonce", "see that leadonce runs and listens where the proxy sends to"}},
	{[]string{"wrong response", ": 504"}, Explanation{"leadonce did not answer the proxy in time", "see the log of leadonce and how busy the machine is; nothing is lost"}},
	{[]string{"wrong response", ": 52"}, Explanation{"the content network in front does not reach the server, or not its certificate", "see its own page on that number, and the certificate and firewall of the server"}},
	{[]string{"wrong response", ": 500"}, Explanation{"something in front of leadonce fails: leadonce itself answers 503", "see the proxy's log"}},
	{[]string{"wrong response"}, Explanation{"the server answered something else than 2xx", "see the proxy's log and that of leadonce of that time"}},
	{[]string{"certificate verify failed"}, Explanation{"the certificate is not trusted: an intermediate one is missing, it is self-signed, expired, or of another name", "serve the full chain (fullchain.pem) of a public authority; `leadonce webhook check` says which it is"}},
	{[]string{"hostname mismatch"}, Explanation{"the certificate is of another name", "get one for the host of the URL, and serve it for that name (SNI)"}},
	{[]string{"wrong version number"}, Explanation{"plain HTTP is spoken on that port", "give leadonce tls.cert_file and tls.key_file, or set the address of the proxy that ends TLS"}},
	{[]string{"ssl"}, Explanation{"no TLS connection came about", "serve TLS 1.2 or newer with an ordinary cipher; `leadonce webhook check` tries it"}},
	{[]string{"connection timed out"}, Explanation{"nothing answers at that address and port", "open the port to 149.154.160.0/20 and 91.108.4.0/22, and see that the name leads to this machine"}},
	{[]string{"timeout"}, Explanation{"the answer took longer than Telegram waits", "see the log of leadonce for slow deliveries and the proxy's buffering; nothing is lost, Telegram sends again"}},
	{[]string{"connection refused"}, Explanation{"nothing listens at that address and port", "start leadonce or the proxy, and see that the name leads to this machine"}},
	{[]string{"connection reset"}, Explanation{"the connection was cut on its way", "see the proxy and the firewall; a server that just restarted does it once"}},
	{[]string{"connection closed"}, Explanation{"the server closed the connection without an answer", "a server that just restarted does it once; else see the proxy's log"}},
	{[]string{"failed to resolve host"}, Explanation{"the host's name leads nowhere", "make an A record for it"}},
	{[]string{"no address associated"}, Explanation{"the host's name has no IPv4 address", "make an A record for it"}},
	{[]string{"unreachable"}, Explanation{"no route leads to that address", "see that the A record is the server's public address"}},
	{[]string{"no route to host"}, Explanation{"no route leads to that address", "see that the A record is the server's public address"}},
	{[]string{"is reserved"}, Explanation{"the host's name leads to a private address", "make an A record with the server's public address"}},
	{[]string{"ipv6-only"}, Explanation{"the host's name has no IPv4 address, and Telegram uses no other", "make an A record for it"}},
	{[]string{"only on ports"}, Explanation{"Telegram delivers to the ports 443, 80, 88 and 8443 only", "put the proxy on one of them"}},
	{[]string{"https url must be provided"}, Explanation{"Telegram delivers over HTTPS only", "set an https address"}},
	{[]string{"invalid webhook url"}, Explanation{"the address is no URL to Telegram", "give one such as https://leads.example.com"}},
	{[]string{"secret token"}, Explanation{"the secret is not 1 to 256 characters A-Za-z0-9_-", "set another one"}},
	{[]string{"can't connect"}, Explanation{"no connection came about", "see that the name leads to this machine, and the firewall"}},
}

// Explain explains last_error_message and what setWebhook is refused with. Of a
// message that is not known it says so.
func Explain(message string) Explanation {
	lower := strings.ToLower(message)
next:
	for _, e := range explanations {
		for _, part := range e.parts {
			if !strings.Contains(lower, part) {
				continue next
			}
		}
		return e.Explanation
	}
	return Explanation{"not a message that is known here", "see the log of leadonce and of the proxy of that time"}
}
