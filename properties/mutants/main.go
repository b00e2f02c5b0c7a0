// Command mutants makes small changes to the engine, one at a time, and runs the
// tests against each. A change that no test notices is either a promise that
// nobody checks, or no change at all: then it is listed in equivalent.txt, with the
// reason.
//
// All mutants are in one build. A mutation site asks whether it is the one that is
// run, and the environment of the test binary says which one that is: the
// production files are parsed, the sites are written into copies, and the copies
// take the place of the files by the compiler's overlay. The source tree stays as
// it is.
//
//	go run ./properties/mutants [-only PATTERN] [-list] [-mutant N] [-equivalents] [-again REPORT]
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// targets is what is mutated. doc.go has no code, and ports.go declares.
var targets = []target{
	{"engine/job", []string{"doc.go"}},
	{"engine", []string{"doc.go", "ports.go"}},
}

// suites is who has to notice. What a suite leaves out is about the simulation
// itself, and notices nothing that the others do not.
var suites = []suite{
	{folder: "engine/job", args: []string{"-test.short", "-rapid.nofailfile"}},
	{folder: "engine", args: []string{"-test.short", "-rapid.nofailfile"}},
	{folder: "properties/laws", args: []string{"-test.short", "-rapid.nofailfile"}},
	{
		folder: "properties/sim", args: []string{"-test.short", "-rapid.nofailfile"},
		left: "^(TestAPlanIsOneRun|TestRunsDiffer|TestTheSimulatedCRM|TestRapid|FuzzSchedule|TestAPlanSurvives|TestABad)",
	},
}

// wanted is the score that is demanded, in percent.
const wanted = 95

func main() {
	only := flag.String("only", "", "mutate only where file or function matches this `pattern`")
	list := flag.Bool("list", false, "list the mutants, and run none")
	one := flag.Int("mutant", 0, "run the mutant with this `number`, and show the output")
	reviewed := flag.Bool("equivalents", false, "run what is listed as equivalent as well")
	atOnce := flag.Int("parallel", 2, "how many mutants run at a time")
	most := flag.Duration("most", 0, "leave out tests that take longer; 0: none")
	again := flag.String("again", "", "mutate only what this `file` names, such as an earlier report")
	flag.Parse()
	pattern, err := regexp.Compile(*only)
	if err != nil {
		fatal(err)
	}
	root, err := moduleRoot()
	if err != nil {
		fatal(err)
	}
	p := project{
		root: root, targets: targets, suites: suites, equivalents: filepath.Join(root, "properties/mutants/equivalent.txt"),
		atOnce: *atOnce, most: *most, reviewed: *reviewed, say: func(s string) { fmt.Print(s) },
	}
	named, err := namedIn(*again)
	if err != nil {
		fatal(err)
	}
	p.wants = func(m Mutant) bool {
		return (*one == 0 || m.ID == *one) && pattern.MatchString(m.File+" "+m.Func) && (named == nil || named[m.Key()])
	}
	if *list {
		err = p.list()
	} else {
		p.shows = *one != 0
		var r report
		if r, err = p.run(); err == nil {
			fmt.Print(r)
			if r.score() < wanted {
				err = fmt.Errorf("the score is below %d %%", wanted)
			} else if len(r.wrong) > 0 {
				err = fmt.Errorf("%d mutants are no equivalents", len(r.wrong))
			}
		}
	}
	if err != nil {
		fatal(err)
	}
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "mutants:", err)
	os.Exit(1)
}

// namedIn is the lines of a report, each of which may be a mutant's key.
func namedIn(report string) (map[string]bool, error) {
	if report == "" {
		return nil, nil
	}
	data, err := os.ReadFile(report)
	if err != nil {
		return nil, err
	}
	named := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		named[strings.TrimSpace(line)] = true
	}
	return named, nil
}

// moduleRoot is the folder of go.mod, from the working directory upwards.
func moduleRoot() (string, error) {
	out, err := goTool(".", "env", "GOMOD")
	if err != nil {
		return "", err
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

// project is one hunt: what is mutated, and by whom it has to be noticed.
type project struct {
	root        string
	targets     []target
	suites      []suite
	equivalents string // file; empty: none
	wants       func(Mutant) bool
	atOnce      int
	most        time.Duration
	reviewed    bool // run the equivalents too
	shows       bool // what the tests print
	say         func(string)
}

// mutants finds the mutants, and those that are known to be equivalent.
func (p *project) mutants() (files []*source, all []Mutant, known map[int]string, err error) {
	files, err = load(p.root, p.targets)
	if err != nil {
		return nil, nil, nil, err
	}
	all = find(files)
	if p.equivalents == "" {
		return files, all, nil, nil
	}
	list, err := readEquivalents(p.equivalents)
	if err != nil {
		return nil, nil, nil, err
	}
	known, complaints := match(list, all)
	if len(complaints) > 0 {
		return nil, nil, nil, fmt.Errorf("%s:\n%s", p.equivalents, strings.Join(complaints, "\n"))
	}
	return files, all, known, nil
}

func (p *project) list() error {
	_, all, known, err := p.mutants()
	if err != nil {
		return err
	}
	for _, m := range all {
		if p.wants(m) {
			note := ""
			if known[m.ID] != "" {
				note = " (equivalent: " + known[m.ID] + ")"
			}
			p.say(fmt.Sprintf("%4d line %3d: %s%s\n", m.ID, m.Line, m.Key(), note))
		}
	}
	return nil
}

// run builds, measures the tests as they are, and hunts.
func (p *project) run() (report, error) {
	began := time.Now()
	files, all, known, err := p.mutants()
	if err != nil {
		return report{}, err
	}
	work, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return report{}, err
	}
	defer os.RemoveAll(work)
	b := &bench{root: p.root, work: work, total: len(all)}
	if b.built, err = build(p.root, work, files, p.suites, len(all)); err != nil {
		return report{}, err
	}
	p.say(fmt.Sprintf("%d mutants, %d of them do not compile; built in %s\n", len(all), len(b.built.dropped), since(began)))
	sound, broken, err := b.baseline(p.suites, p.atOnce)
	if err != nil {
		return report{}, err
	}
	p.tell(sound, broken)
	if p.most > 0 {
		for len(sound) > 0 && sound[len(sound)-1].took > p.most {
			sound = sound[:len(sound)-1]
		}
	}
	r := report{broken: len(broken)}
	var chosen []Mutant
	for _, m := range all {
		switch {
		case !p.wants(m):
		case b.built.dropped[m.ID]:
			r.dropped = append(r.dropped, m)
		case known[m.ID] != "" && !p.reviewed:
			r.equivalent++
		default:
			chosen = append(chosen, m)
		}
	}
	hunting := time.Now()
	r.fates = b.hunt(chosen, sound, p.atOnce, func(done int, f fate) { p.progress(done, len(chosen), hunting, f) })
	r.setAside(known)
	r.took = time.Since(began)
	return r, nil
}
