package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A process that serves HTTPS is asked by address, which its certificate does not
// name. What it answers is judged, and not what it points to.
func TestHealthOfOneThatServesHTTPS(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/elsewhere" {
			http.Redirect(w, r, "/readyz", http.StatusFound)
		}
	}))
	t.Cleanup(server.Close)
	if err := askHealth(t.Context(), server.URL+"/readyz"); err != nil {
		t.Error(err)
	}
	if err := askHealth(t.Context(), server.URL+"/elsewhere"); err == nil || !strings.Contains(err.Error(), "302") {
		t.Errorf("a redirect is taken for health: %v", err)
	}
	c := defaultConfig()
	c.TLS.CertFile = "cert.pem"
	if got, err := healthURL(c, false); got != "https://127.0.0.1:8080/readyz" || err != nil {
		t.Errorf("asks %s, %v", got, err)
	}
}
