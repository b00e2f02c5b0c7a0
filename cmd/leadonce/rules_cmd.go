package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
	"github.com/spf13/cobra"

	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/engine/rules"
)

func rulesCommand() *cobra.Command {
	parent := &cobra.Command{Use: "rules", Short: "Try the rules that say which updates become leads", Args: noArgs, RunE: help}
	parent.AddCommand(rulesTestCommand())
	return parent
}

func rulesTestCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "test FILE [UPDATE.json...]",
		Short: "Show what the rules in FILE make of updates, and why",
		Long: "Reads the rules from FILE, a leadonce.yaml, and updates from the files, or from standard input:\n" +
			"JSON objects as Telegram delivers them, or answers of getUpdates. Nothing is sent or stored, and\n" +
			"no history is known: each update is shown as if it were the first. Which lead a series has already,\n" +
			"and which id a supergroup had before, is in the log of `serve`.\n\n" +
			"The first rule whose condition holds decides; after the last one, a message in a private chat\n" +
			"with text, contact, photo, document or voice is a lead, and a command only as /start PAYLOAD.\n\n" +
			"A rule: name, when (a condition; none holds always), action (create_lead or ignore), business_key\n" +
			"(what updates have in common that are one lead), or series (a window such as 2m, in which what a\n" +
			"person sends in a chat is one lead; chat.origin is the chat's id from before it became a\n" +
			"supergroup), and fields (each an expression, or a text with\n" +
			"${EXPRESSION} in it).\n\n" +
			"Names: " + rules.Names + "\nFunctions: " + rules.Functions + "\n" +
			"Operators: == != < > and or not in contains startsWith endsWith matches + - * / ?: ??\n\n" +
			"Exit status 1 if an update cannot be read, 2 for a mistake in FILE.",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return mistake("%s takes FILE [UPDATE.json...]; see `%s --help`", c.CommandPath(), c.CommandPath())
			}
			return nil
		},
	}
	out := withOutput(c)
	bot := c.Flags().Int64("bot", 0, "the id of the bot that gets the updates (default: the first in FILE)")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := out.check(); err != nil {
			return err
		}
		set, first, err := readRules(args[0])
		if err != nil {
			return err
		}
		if *bot == 0 {
			*bot = first
		}
		t := trial{rules: set, bot: *bot}
		unread := t.readAll(args[1:], c.InOrStdin())
		if out.json() {
			err = writeJSON(c.OutOrStdout(), t.shown)
		} else {
			err = t.write(c.OutOrStdout())
		}
		return errors.Join(err, unread)
	}
	return c
}

// readRules returns the rules of a configuration, and the id of its first bot; 1
// when it names none.
func readRules(path string) (*rules.Set, int64, error) {
	c, err := readConfig(path, nil)
	if err != nil {
		return nil, 0, err
	}
	if len(c.Bots) > 0 && c.Bots[0].ID > 0 {
		return c.rules, c.Bots[0].ID, nil
	}
	return c.rules, 1, nil
}

// checkRuleNumbers refuses numbers that YAML would change in silence before they are
// expressions or texts: 0123 would become 83.
func checkRuleNumbers(path string, data []byte) error {
	within := false
	for _, t := range lexer.Tokenize(string(data)) {
		if t.Position.Column == 1 && t.Next != nil && t.Next.Type == token.MappingValueType {
			within = t.Value == "rules" || t.Value == "reply"
		}
		switch t.Type {
		case token.FloatType, token.InfinityType, token.NanType, token.BinaryIntegerType, token.OctetIntegerType, token.HexIntegerType:
			if within {
				return mistake("%s:%d: put quotes around the value, or it is not read as it stands", path, t.Position.Line)
			}
		}
	}
	return nil
}

// compileRules makes a mistake in the rules one of the file, with its line there.
func compileRules(path string, data []byte, list []rules.Rule) (*rules.Set, error) {
	set, err := rules.New(path, list)
	if err != nil {
		return nil, onLine(path, data, err)
	}
	return set, nil
}

// lineOf is the line of the value at a path such as rules[2].when, or of the
// nearest one around it that is there; 0 when there is none.
func lineOf(data []byte, at string) (line int) {
	defer func() {
		if recover() != nil { // as in decode
			line = 0
		}
	}()
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return 0
	}
	for at != "" {
		if path, err := yaml.PathString("$." + at); err == nil {
			if node, err := path.FilterFile(file); err == nil {
				return node.GetToken().Position.Line
			}
		}
		at = at[:max(strings.LastIndexAny(at, ".["), 0)]
	}
	return 0
}

// trial shows updates to the rules.
type trial struct {
	rules *rules.Set
	bot   int64
	shown []shownUpdate
}

// shownUpdate is what the rules make of one update.
type shownUpdate struct {
	From        string            `json:"from"` // the file
	Key         string            `json:"key"`
	Kind        string            `json:"kind"`
	Rule        string            `json:"rule"` // "" for the defaults
	Passed      []passedRule      `json:"passed"`
	Action      string            `json:"action"` // create_lead, none or dead_letter
	Reason      string            `json:"reason,omitempty"`
	BusinessKey string            `json:"business_key,omitempty"`
	OperationID string            `json:"operation_id,omitempty"`
	Wait        string            `json:"wait,omitempty"`
	Series      string            `json:"series,omitempty"`
	Fields      map[string]string `json:"fields,omitempty"`

	group bool // it is of a chat of several people
}

type passedRule struct {
	Rule    string `json:"rule"`
	Because string `json:"because"`
}

// readAll shows the updates of all files, or of stdin when there are none. It goes
// on behind what it cannot read, and returns that.
func (t *trial) readAll(files []string, stdin io.Reader) error {
	t.shown = []shownUpdate{}
	if len(files) == 0 {
		return t.read("stdin", stdin)
	}
	unread := 0
	var first error
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err == nil {
			err = t.read(name, bytes.NewReader(data))
		}
		if err != nil {
			if unread++; first == nil {
				first = err
			}
		}
	}
	if unread > 1 {
		return fmt.Errorf("%w; and %d more", first, unread-1)
	}
	return first
}

// read shows the JSON documents of one file. The first that is no update ends it.
func (t *trial) read(name string, r io.Reader) error {
	dec := json.NewDecoder(r)
	for n := 1; ; n++ {
		var raw json.RawMessage
		switch err := dec.Decode(&raw); {
		case errors.Is(err, io.EOF) && n > 1:
			return nil
		case errors.Is(err, io.EOF):
			return fmt.Errorf("%s: no update in it; give JSON as Telegram delivers it", name)
		case err != nil:
			return fmt.Errorf("%s: document %d is no JSON", name, n)
		}
		for _, one := range updatesIn(raw) {
			u, err := job.ParseUpdate(t.bot, one)
			if err != nil {
				return fmt.Errorf("%s: document %d: %w", name, n, err)
			}
			t.show(name, u)
		}
	}
}

// updatesIn are the updates of an answer of getUpdates, or the document itself.
func updatesIn(raw json.RawMessage) []json.RawMessage {
	var answer struct {
		OK     bool              `json:"ok"`
		Result []json.RawMessage `json:"result"`
	}
	if json.Unmarshal(raw, &answer) == nil && answer.OK {
		return answer.Result
	}
	return []json.RawMessage{raw}
}

func (t *trial) show(from string, u job.Update) {
	x := t.rules.Explain(u.Key(), u)
	s := shownUpdate{
		From: from, Key: u.Key().String(), Kind: u.Kind, Rule: x.Rule, Passed: []passedRule{},
		Action: "none", Reason: x.Plan.Reason, group: u.Chat < 0,
	}
	for _, p := range x.Passed {
		s.Passed = append(s.Passed, passedRule{p.Rule, p.Because})
	}
	switch {
	case x.Plan.Undecodable != "":
		s.Action, s.Reason = "dead_letter", x.Plan.Undecodable
		if x.Failed != "" {
			s.Reason += ": " + x.Failed
		}
	case x.Plan.Effect:
		s.Action, s.BusinessKey, s.Fields = x.Plan.Action, x.Plan.BusinessKey, x.Plan.Fields
		s.OperationID = job.OperationID(u.Bot, x.Plan.Action, x.Plan.BusinessKey)
		if x.Plan.Series.Window > 0 { // then it depends on what came before, in the log
			s.BusinessKey, s.OperationID, s.Series = "", "", x.Plan.Series.Window.String()
		}
		if x.Plan.Defer > 0 {
			s.Wait = x.Plan.Defer.String()
		}
	}
	t.shown = append(t.shown, s)
}

// write tells it for people: a paragraph for every update.
func (t *trial) write(w io.Writer) error {
	var b strings.Builder
	for i, s := range t.shown {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s: %s, %s\n", s.From, s.Key, s.Kind)
		for _, p := range s.Passed {
			fmt.Fprintf(&b, "  not %s: %s\n", p.Rule, p.Because)
		}
		rule := s.Rule
		if rule == "" {
			rule = "none, the defaults decide"
		}
		fmt.Fprintf(&b, "  rule: %s\n  action: %s\n", rule, s.Action)
		if s.Reason != "" {
			fmt.Fprintf(&b, "  because: %s\n", s.Reason)
		}
		if s.BusinessKey != "" {
			fmt.Fprintf(&b, "  business key: %s\n  operation: %s\n", s.BusinessKey, s.OperationID)
		}
		if s.Wait != "" {
			fmt.Fprintf(&b, "  waits %s for the other members of its album\n", s.Wait)
		}
		if s.Series != "" {
			fmt.Fprintf(&b, "  series: one lead with what the same person sent here within %s of the first, which only the log of serve knows\n", s.Series)
		}
		if s.group && s.BusinessKey != "" {
			b.WriteString("  history: chat.origin is chat.id here; only serve knows the id from before a group became a supergroup\n")
		}
		for _, name := range slices.Sorted(maps.Keys(s.Fields)) {
			fmt.Fprintf(&b, "  field %s: %q\n", name, s.Fields[name])
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
