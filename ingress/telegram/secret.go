package telegram

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
)

// SecretHeader carries the secret_token of setWebhook.
const SecretHeader = "X-Telegram-Bot-Api-Secret-Token"

// Limits of a secret_token, https://core.telegram.org/bots/api#setwebhook.
const (
	maxSecret  = 256 // bytes
	maxSecrets = 2   // the old one and the new one
)

// secrets are the SHA-256 digests of a bot's secrets. Digests have one length,
// so comparing them tells nothing of a secret's length or beginning.
type secrets [][sha256.Size]byte

// digest checks the secrets. Its errors name none of them.
func digest(plain []string) (secrets, error) {
	switch {
	case len(plain) == 0:
		return nil, errors.New("no secret: set one of 1 to 256 characters A-Za-z0-9_-, the same as setWebhook's secret_token")
	case len(plain) > maxSecrets:
		return nil, fmt.Errorf("%d secrets: at most two, the old one and the new one", len(plain))
	}
	var digests secrets
	for i, s := range plain {
		if !wellFormed(s) {
			return nil, fmt.Errorf("secret %d of %d is not 1 to 256 characters A-Za-z0-9_-: set another one", i+1, len(plain))
		}
		digests = append(digests, sha256.Sum256([]byte(s)))
	}
	return digests, nil
}

func wellFormed(s string) bool {
	if s == "" || len(s) > maxSecret {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// admit reports whether the header's values are one secret.
func (s secrets) admit(values []string) bool {
	return s.match(values, subtle.ConstantTimeCompare)
}

// match compares with every secret, whatever the first comparison says. compare
// is subtle.ConstantTimeCompare, but for the test that counts what it is given.
func (s secrets) match(values []string, compare func(x, y []byte) int) bool {
	presented := ""
	if len(values) == 1 {
		presented = values[0] // else no secret at all: none is empty
	}
	given, equal := sha256.Sum256([]byte(presented)), 0
	for i := range s {
		equal |= compare(given[:], s[i][:])
	}
	return equal == 1
}
