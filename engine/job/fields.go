package job

import (
	"encoding/json"
	"errors"
)

// MaxFields is how large the fields of a lead may be, as JSON: they stand in its
// first claim, and an event has a limit.
const MaxFields = 1 << 20 // bytes

// Fields are the fields of a lead as one JSON object of texts, its names sorted. A
// map cannot be compared, and events are.
type Fields string

// NewFields writes the fields down; no fields give "".
func NewFields(fields map[string]string) Fields {
	if len(fields) == 0 {
		return ""
	}
	text, _ := json.Marshal(fields) // a map of texts can always be written
	return Fields(text)
}

// Map is the fields by their names.
func (f Fields) Map() map[string]string {
	fields := map[string]string{}
	if f != "" {
		_ = json.Unmarshal([]byte(f), &fields) // NewFields or UnmarshalJSON wrote it
	}
	return fields
}

// MarshalJSON is the object itself.
func (f Fields) MarshalJSON() ([]byte, error) {
	if f == "" {
		return []byte("{}"), nil
	}
	return []byte(f), nil
}

// UnmarshalJSON takes an object of texts.
func (f *Fields) UnmarshalJSON(data []byte) error {
	var fields map[string]string
	if err := json.Unmarshal(data, &fields); err != nil {
		return errors.New("fields: want an object of texts") // the error's own words hold the values
	}
	*f = NewFields(fields)
	return nil
}
