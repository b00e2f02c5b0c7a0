package main

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The test binary is leadonce itself when it is started under that name, and
// the tool that writes logs under the name fill.
func TestMain(m *testing.M) {
	// Tests of processes wait more than they work. The command line overrules it.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){"leadonce": leadonce, "fill": fill})
}

// promise is the environment variable in which a test names the class that a
// simulated CRM really has, whatever class it was started with: one that lies.
const promise = "LEADONCE_TEST_TRUE_CLASS"

func leadonce() {
	if class := os.Getenv(promise); class != "" && len(os.Args) > 1 && os.Args[1] == "crmsim" {
		for i, arg := range os.Args[:len(os.Args)-1] {
			if arg == "--class" {
				os.Args[i+1] = class
			}
		}
	}
	main()
}

// own is this process's environment without what leadonce reads from it.
func own(extra ...string) []string {
	var env []string
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "LEADONCE_") {
			env = append(env, pair)
		}
	}
	return append(env, extra...)
}
