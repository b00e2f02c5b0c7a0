package botapi

import "fmt"

// Level is how much a finding matters.
type Level string

// The levels.
const (
	Fine    Level = "ok"
	Note    Level = "note"    // good to know
	Problem Level = "problem" // updates do not arrive, or not all, or from anyone
)

// Finding is one thing that was looked at.
type Finding struct {
	Level   Level  `json:"level"`
	Subject string `json:"subject"` // what was looked at, in a word or two
	What    string `json:"what"`
	Mend    string `json:"mend,omitempty"`
}

func fine(subject, format string, args ...any) Finding {
	return Finding{Fine, subject, fmt.Sprintf(format, args...), ""}
}

func note(subject, mend, format string, args ...any) Finding {
	return Finding{Note, subject, fmt.Sprintf(format, args...), mend}
}

func problem(subject, mend, format string, args ...any) Finding {
	return Finding{Problem, subject, fmt.Sprintf(format, args...), mend}
}
