package main

import (
	"bytes"
	"database/sql"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs testdata/script. Beside the commands of testscript it has
//
//	exits STATUS COMMAND ARG...           the exit status is that one
//	refused STATUS PATTERN COMMAND ARG... it prints one line, on stderr, that matches
//	start NAME COMMAND ARG...             runs until terminated; $NAME is its URL, $NAME_address HOST:PORT
//	terminate NAME                        SIGTERM; it must end with status 0
//	printed NAME PATTERN                  waits until it has
//	deliver STATUS NAME FILE              posts FILE as an update of bot 700000001
//	answers NAME PATH PATTERN             waits until GET answers 200 and matches
//	sql FILE STATEMENT                    executes it in a SQLite file
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("TELEGRAM_WEBHOOK_SECRET", secret)
			env.Values[running{}] = map[string]*program{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "refused": refused, "start": start, "terminate": terminate, "printed": printed,
			"deliver": deliver, "answers": answers, "sql": execute,
		},
	})
}

const secret = "secret-canary-7d1f"

// running is the key of a script's programs.
type running struct{}

func find(ts *testscript.TestScript, name string) *program {
	p := ts.Value(running{}).(map[string]*program)[name]
	if p == nil {
		ts.Fatalf("%s was not started", name)
	}
	return p
}

// plain ends the test of a command that was misused.
func plain(ts *testscript.TestScript, neg bool, args []string, atLeast int) {
	if neg || len(args) < atLeast {
		ts.Fatalf("want at least %d arguments and no !", atLeast)
	}
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, args, 2)
	got := 0
	var failure *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &failure) {
		got = failure.ExitCode()
	} else {
		ts.Check(err)
	}
	if want := args[0]; strconv.Itoa(got) != want {
		ts.Fatalf("exit status %d, want %s", got, want)
	}
}

func refused(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, args, 3)
	exits(ts, false, append(args[:1:1], args[2:]...))
	line, rest, _ := strings.Cut(ts.ReadFile("stderr"), "\n")
	switch {
	case rest != "" || ts.ReadFile("stdout") != "":
		ts.Fatalf("it prints more than one line")
	case !strings.HasPrefix(line, "leadonce: "):
		ts.Fatalf("the line does not begin with the program's name")
	case !regexp.MustCompile(args[1]).MatchString(line):
		ts.Fatalf("the line does not match %s", args[1])
	case strings.Contains(line, "canary"):
		ts.Fatalf("the line shows a secret")
	}
}

// passed are the variables of a script that its programs see.
var passed = []string{
	"PATH", "HOME", "TMPDIR", "TELEGRAM_WEBHOOK_SECRET", "crm",
	"LEADONCE_LISTEN", "LEADONCE_DATA_DIR", "LEADONCE_LOGGING_LEVEL", "LEADONCE_LOGGING_FORMAT",
}

func start(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, args, 2)
	var env []string
	for _, name := range passed {
		if value := ts.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	p, err := launch(ts.MkAbs("."), env, args[1], args[2:]...)
	ts.Check(err)
	ts.Defer(p.kill)
	address, err := p.await(`http://127\.0\.0\.1:[0-9]+`)
	ts.Check(err)
	ts.Value(running{}).(map[string]*program)[args[0]] = p
	ts.Setenv(args[0], address[0])
	ts.Setenv(args[0]+"_address", strings.TrimPrefix(address[0], "http://"))
}

func terminate(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, args, 1)
	p := find(ts, args[0])
	p.signal(syscall.SIGTERM)
	status, err := p.exit()
	ts.Check(err)
	if text, _ := p.output(); status != 0 {
		ts.Fatalf("exit status %d; output:\n%s", status, text)
	}
}

func printed(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, args, 2)
	_, err := find(ts, args[0]).await(args[1])
	ts.Check(err)
}

func deliver(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, args, 3)
	status, err := post(ts.Getenv(args[1]), secret, []byte(ts.ReadFile(args[2])))
	ts.Check(err)
	if strconv.Itoa(status) != args[0] {
		ts.Fatalf("answered %d, want %s", status, args[0])
	}
}

// post delivers an update as Telegram does, and returns the status.
func post(base, secret string, body []byte) (int, error) {
	r, err := http.NewRequest(http.MethodPost, base+"/telegram/700000001", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("X-Telegram-Bot-Api-Secret-Token", secret)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

func answers(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, args, 3)
	re := regexp.MustCompile(args[2])
	body := ""
	err := poll(func() (done bool) {
		status, text, err := get(ts.Getenv(args[0]) + args[1])
		body = text
		return err == nil && status == http.StatusOK && re.MatchString(text)
	})
	if err != nil {
		ts.Fatalf("%s does not answer %s but %s", args[1], args[2], body)
	}
}

func execute(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, args, 2)
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	defer db.Close()
	_, err = db.Exec(args[1])
	ts.Check(err)
	ts.Check(os.Chmod(ts.MkAbs(args[0]), 0o600))
}
