package telegram

import (
	"crypto/sha256"
	"strings"
	"testing"
)

// Whatever is presented, each configured secret costs one comparison of two
// digests: nothing depends on a common beginning or on a length.
func TestT25_ComparesDigestsOnly(t *testing.T) {
	configured := []string{"secret-0123456789", strings.Repeat("x", maxSecret)}
	known, err := digest(configured)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		values []string
		admit  bool
	}{
		"missing":           {nil, false},
		"empty":             {[]string{""}, false},
		"the first":         {[]string{configured[0]}, true},
		"the second":        {[]string{configured[1]}, true},
		"twice":             {[]string{configured[0], configured[0]}, false},
		"wrong first byte":  {[]string{"Xecret-0123456789"}, false},
		"wrong last byte":   {[]string{"secret-012345678X"}, false},
		"a beginning":       {[]string{"secret-"}, false},
		"257 characters":    {[]string{strings.Repeat("x", maxSecret+1)}, false},
		"with a space":      {[]string{configured[0] + " "}, false},
		"comma and again":   {[]string{configured[0] + ", " + configured[0]}, false},
		"non-ASCII":         {[]string{"secret-012345678é"}, false},
		"NUL at the end":    {[]string{configured[0] + "\x00"}, false},
		"other letter case": {[]string{strings.ToUpper(configured[0])}, false},
	} {
		t.Run(name, func(t *testing.T) {
			comparisons := 0
			admitted := known.match(c.values, func(x, y []byte) int {
				comparisons++
				if len(x) != sha256.Size || len(y) != sha256.Size {
					t.Errorf("compared %d with %d bytes, want %d", len(x), len(y), sha256.Size)
				}
				if string(x) == string(y) {
					return 1
				}
				return 0
			})
			if comparisons != len(configured) {
				t.Errorf("%d comparisons, want %d", comparisons, len(configured))
			}
			if admitted != c.admit || known.admit(c.values) != c.admit {
				t.Errorf("admitted: %t and %t, want %t", admitted, known.admit(c.values), c.admit)
			}
		})
	}
}

func TestT26_RefusesToStartWithoutProperSecrets(t *testing.T) {
	for name, c := range map[string]struct {
		bots []Bot
		want string
	}{
		"none":           {[]Bot{{ID: 42}}, "bot 42: no secret"},
		"empty":          {[]Bot{{42, []string{""}}}, "bot 42: secret 1 of 1"},
		"second is bad":  {[]Bot{{42, []string{"fine", "hush hush"}}}, "bot 42: secret 2 of 2"},
		"too long":       {[]Bot{{42, []string{strings.Repeat("h", maxSecret+1)}}}, "bot 42: secret 1 of 1"},
		"non-ASCII":      {[]Bot{{42, []string{"húsh"}}}, "bot 42: secret 1 of 1"},
		"line break":     {[]Bot{{42, []string{"hush\n"}}}, "bot 42: secret 1 of 1"},
		"three":          {[]Bot{{42, []string{"hush1", "hush2", "hush3"}}}, "bot 42: 3 secrets"},
		"of another bot": {[]Bot{{41, []string{"fine"}}, {ID: 42}}, "bot 42: no secret"},
		"no bot":         {nil, "no bot"},
		"bot twice":      {[]Bot{{42, []string{"hush1"}}, {42, []string{"hush2"}}}, "bot 42 is configured twice"},
		"bot 0":          {[]Bot{{0, []string{"hush1"}}}, "bot 0"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(Config{Bots: c.bots, Accepter: refuser{}})
			if err == nil {
				t.Fatal("it starts")
			}
			if got := err.Error(); !strings.Contains(got, c.want) || strings.Contains(got, "\n") || strings.Contains(got, "hush") || strings.Contains(got, "hhhh") {
				t.Errorf("error %q, want one line with %q and without the secret", got, c.want)
			}
		})
	}
	for _, s := range []string{"x", strings.Repeat("h", maxSecret), "AZaz09_-"} {
		if _, err := New(Config{Bots: []Bot{{42, []string{s}}}, Accepter: refuser{}}); err != nil {
			t.Errorf("a secret of %d characters is refused: %v", len(s), err)
		}
	}
}

type refuser struct{ Accepter }
