package rules

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/expr-lang/expr/file"
)

// Error is a mistake in the rules, in one line. It quotes no literal of theirs: one
// could be a secret that is in the wrong place.
type Error struct {
	Source  string // the file, as New was told
	Path    string // such as rules[2].when
	Line    int    // in the expression, from 1; 0 when it is about no place in it
	Column  int    // in characters, from 1
	Problem string
	Mend    string
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.Source != "" {
		b.WriteString(e.Source + ": ")
	}
	b.WriteString(e.Path + ": ")
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d column %d: ", e.Line, e.Column)
	}
	b.WriteString(e.Problem + ": " + e.Mend)
	return b.String()
}

// Names are those that an expression may use, for help texts.
const Names = "kind, bot, chat, user, contact, text, caption, command, args, payload, data, album, message_id, " +
	"forwarded, is_private, has_photo, has_voice, has_document, has_contact, update"

// Functions are those that an expression may call, beside the operators.
const Functions = "lower, upper, trim, trimPrefix, trimSuffix, split, string, int, float, len, type, first, last, " +
	"any, all, none, one, count, find, filter"

// located is the library's error as ours.
func (c compiler) located(part string, err error) *Error {
	e := c.mistake(part, "cannot be understood", "write an expression such as kind == \"message\"")
	var f *file.Error
	switch {
	case errors.Is(err, errPanic):
		return e
	case errors.As(err, &f):
		e.Line, e.Column, e.Problem = f.Line, f.Column+1, withoutLiterals(f.Message)
	default: // about the whole
		e.Line, e.Column, e.Problem = 1, 1, withoutLiterals(err.Error())
	}
	e.Mend = mend(part, e.Problem)
	if c.reply {
		e.Mend = strings.Replace(e.Mend, Names, Names+", crm_id", 1)
		e.Mend = strings.Replace(e.Mend, "try it with `leadonce rules test`", "check it with `leadonce config check`", 1)
	}
	return e
}

func mend(part, problem string) string {
	switch {
	case strings.HasPrefix(problem, "unknown name") && strings.HasPrefix(part, "fields."):
		return `a text stands in quotes, as in '"shop"'; the names are ` + Names
	case strings.HasPrefix(problem, "unknown name"):
		return "the names are " + Names + "; the functions " + Functions
	case strings.HasPrefix(problem, "type chat "):
		return "chat has id, type, title and username"
	case strings.HasPrefix(problem, "type user "):
		return "user has id, name, first_name, last_name, username, language and is_bot"
	case strings.HasPrefix(problem, "type contact "):
		return "contact has phone, name, first_name, last_name, user_id and own"
	case strings.HasPrefix(problem, "expected bool"):
		return "a condition is true or false: compare with ==, contains, in, matches"
	default:
		return "mend the expression there, and try it with `leadonce rules test`"
	}
}

var literal = regexp.MustCompile("\"(\\\\.|[^\"\\\\])*\"|'(\\\\.|[^'\\\\])*'|`[^`]*`")

// withoutLiterals is the library's message in one line, without what it quotes but
// for single names and signs.
func withoutLiterals(message string) string {
	message = strings.NewReplacer("\n", " ", "\r", " ", "rules.", "").Replace(message)
	if strings.HasPrefix(message, "error parsing regexp: ") { // what follows quotes the pattern
		message, _, _ = strings.Cut(message, ": `")
		return message
	}
	if name, ok := strings.CutPrefix(message, "unknown name "); ok {
		return "unknown name " + short(name)
	}
	if strings.HasPrefix(message, "unexpected token String(") {
		return "unexpected text"
	}
	message = literal.ReplaceAllStringFunc(message, func(l string) string {
		if len(l) <= len(`"xx"`) { // an operator
			return l
		}
		return `"…"`
	})
	return short(strings.TrimSpace(message))
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func short(s string) string {
	const most = 200
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
