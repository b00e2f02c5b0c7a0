package job

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Key is the event key: it names one update for ever.
type Key struct {
	Bot    int64 `json:"bot"`
	Update int64 `json:"update_id"`

	// Variant is empty, but for an update whose id had already been taken by
	// another one: then it is the first 16 hexadecimal digits of the fingerprint.
	Variant string `json:"variant,omitempty"`
}

// VariantLength is the number of hexadecimal digits in a Key's Variant.
const VariantLength = 16

// String is the key in the form telegram/<bot>/<update>[/<variant>].
func (k Key) String() string { return "telegram/" + k.join("/") }

// Stream is the name of the job's stream, update-<bot>-<update>[-<variant>].
func (k Key) Stream() string { return JobStreams + k.join("-") }

// ReplyStream is the name of the stream of the reply to the job's person,
// reply-<bot>-<update>[-<variant>].
func (k Key) ReplyStream() string { return ReplyStreams + k.join("-") }

func (k Key) join(separator string) string {
	s := strconv.FormatInt(k.Bot, 10) + separator + strconv.FormatInt(k.Update, 10)
	if k.Variant != "" {
		s += separator + k.Variant
	}
	return s
}

// ParseKey reads what String wrote.
func ParseKey(s string) (Key, error) {
	parts := strings.Split(s, "/")
	if len(parts) < 3 || len(parts) > 4 || parts[0] != "telegram" {
		return Key{}, fmt.Errorf("event key %q is not of the form telegram/<bot>/<update_id>", s)
	}
	bot, err1 := strconv.ParseInt(parts[1], 10, 64)
	update, err2 := strconv.ParseInt(parts[2], 10, 64)
	if err1 != nil || err2 != nil {
		return Key{}, fmt.Errorf("event key %q: bot and update_id are whole numbers", s)
	}
	k := Key{Bot: bot, Update: update}
	if len(parts) == 4 {
		if strings.Trim(parts[3], "0123456789abcdef") != "" || len(parts[3]) != VariantLength {
			return Key{}, fmt.Errorf("event key %q: the variant is %d small hexadecimal digits", s, VariantLength)
		}
		k.Variant = parts[3]
	}
	if k.String() != s { // +1, 007, -0: no second spelling of a key
		return Key{}, fmt.Errorf("event key %q is spelled %s", s, k)
	}
	return k, nil
}

// The prefixes of the kinds of stream that say something of updates, chats and bots.
// Other streams in the log are those of tools, such as the readiness probe's, or not
// leadonce's own.
const (
	JobStreams       = "update-"
	OperationStreams = "operation-"
	ChatStreams      = "chat-"
	SeriesStreams    = "series-"
	ReplyStreams     = "reply-"
	BotStreams       = "bot-"
)

// JobStreamsOf is the prefix of the streams of a bot's jobs.
func JobStreamsOf(bot int64) string { return JobStreams + strconv.FormatInt(bot, 10) + "-" }

// operationNamespace is the UUID namespace of operation ids. Changing it would
// give every operation a new id, and so a second lead.
var operationNamespace = [16]byte{0x6f, 0x1d, 0x9a, 0x52, 0x0b, 0x7e, 0x4c, 0x3d, 0x9c, 0x41, 0x5e, 0x88, 0x27, 0xd4, 0xb1, 0x06}

// OperationID is the name under which the CRM knows an operation: the UUIDv5
// (RFC 9562) of bot, action and business key, so it is the same over every
// retry, process and restored log.
func OperationID(bot int64, action, businessKey string) string {
	h := sha1.New()
	h.Write(operationNamespace[:])
	fmt.Fprintf(h, "%d\n%s\n%s", bot, action, businessKey)
	return uuid5(h.Sum(nil))
}

func uuid5(sum []byte) string {
	u := sum[:16]
	u[6] = u[6]&0x0f | 0x50
	u[8] = u[8]&0x3f | 0x80
	s := hex.EncodeToString(u)
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}
