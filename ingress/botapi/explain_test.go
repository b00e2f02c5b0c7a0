package botapi

import (
	"strings"
	"testing"
)

func TestExplain(t *testing.T) {
	for message, want := range map[string]string{
		"Wrong response from the webhook: 401 Unauthorized":                                                           "refuses the secret",
		"Wrong response from the webhook: 404 Not Found":                                                              "nothing under that path",
		"Wrong response from the webhook: 301 Moved Permanently":                                                      "redirects",
		"Wrong response from the webhook: 308 Permanent Redirect":                                                     "redirects",
		"Wrong response from the webhook: 503 Service Unavailable":                                                    "cannot store",
		"Wrong response from the webhook: 502 Bad Gateway":                                                            "proxy does not reach",
		"Wrong response from the webhook: 526 ":                                                                       "content network",
		"Wrong response from the webhook: 418 I'm a teapot":                                                           "something else than 2xx",
		"SSL error {error:0A000086:SSL routines::certificate verify failed}":                                          "not trusted",
		"SSL error {337047686, error:1416F086:SSL routines:tls_process_server_certificate:certificate verify failed}": "not trusted",
		"SSL error {error:0A00010B:SSL routines::wrong version number}":                                               "plain HTTP",
		"SSL error {error:0A000410:SSL routines::sslv3 alert handshake failure}":                                      "no TLS connection",
		"Connection timed out":                                          "nothing answers",
		"Read timeout expired":                                          "longer than Telegram waits",
		"Connection refused":                                            "nothing listens",
		"Connection reset by peer":                                      "was cut",
		"Webhook connection closed":                                     "without an answer",
		"Failed to resolve host: Name or service not known":             "leads nowhere",
		"Bad Request: bad webhook: IP address 10.0.0.1 is reserved":     "private address",
		"Bad Request: bad webhook: IPv6-only addresses are not allowed": "no IPv4",
		"Bad Request: bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443": "443, 80, 88 and 8443",
		"Bad Request: bad webhook: An HTTPS URL must be provided for webhook":               "HTTPS only",
		"Network is unreachable": "no route",
		"something new":          "not a message that is known",
	} {
		if x := Explain(message); !strings.Contains(x.Meaning, want) || x.Mend == "" {
			t.Errorf("%s means %q, want %q; mend %q", message, x.Meaning, want, x.Mend)
		}
	}
	for _, e := range explanations {
		for _, part := range e.parts {
			if part != strings.ToLower(part) {
				t.Errorf("%q is never found", part)
			}
		}
	}
}
