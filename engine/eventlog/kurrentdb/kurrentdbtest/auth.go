package kurrentdbtest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"google.golang.org/grpc/metadata"
)

// Call is a call that arrived, as tests of a client want to see it.
type Call struct {
	Method         string // Append, Read, Subscribe, Delete, Tombstone
	Stream         string // "$all" for all streams
	RequiresLeader bool   // the header requires-leader: true came with it
	User           string // "" when none was named
}

// callsKept bounds what a server that runs for long remembers.
const callsKept = 10_000

// Calls returns the last ten thousand calls, oldest first.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// access is what a call wants to do with a stream.
type access struct {
	stream string
	write  bool
}

// enter records a call and checks who makes it.
func (s *Server) enter(ctx context.Context, method, stream string, wanted access) error {
	md, _ := metadata.FromIncomingContext(ctx)
	user, known := s.authenticate(md)
	s.mu.Lock()
	if len(s.calls) >= callsKept {
		s.calls = slices.Delete(s.calls, 0, callsKept/2)
	}
	s.calls = append(s.calls, Call{method, stream, requiresLeader(ctx), user})
	s.mu.Unlock()
	if !known {
		return errUnauthenticated
	}
	if wanted.stream == "$all" && wanted.write || !s.allowed(user, wanted) {
		return errAccessDenied
	}
	return nil
}

func requiresLeader(ctx context.Context) bool {
	md, _ := metadata.FromIncomingContext(ctx)
	values := md.Get("requires-leader")
	return len(values) > 0 && strings.EqualFold(values[0], "true")
}

// authenticate finds the caller's name; a name that is wrong is not known.
func (s *Server) authenticate(md metadata.MD) (user string, known bool) {
	values := md.Get("authorization")
	if len(values) == 0 || s.opts.User == "" {
		return "", true
	}
	encoded, basic := strings.CutPrefix(values[0], "Basic ")
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if !basic || err != nil {
		return "", false
	}
	switch string(decoded) {
	case s.opts.User + ":" + s.opts.Password:
		return s.opts.User, true
	case s.opts.PlainUser + ":" + s.opts.PlainPassword:
		return s.opts.PlainUser, s.opts.PlainUser != ""
	}
	return "", false
}

// allowed is LegacyStreamPermissionAssertion with the default lists: anybody
// with a name may use ordinary streams, administrators those of the system,
// unless a stream's metadata says otherwise.
func (s *Server) allowed(user string, wanted access) bool {
	if s.opts.User == "" || user == s.opts.User {
		return true
	}
	if user == "" {
		return false
	}
	if isMetastream(wanted.stream) {
		return !strings.HasPrefix(wanted.stream, "$$$")
	}
	s.store.mu.Lock()
	acl := s.store.reader(0).metadata(wanted.stream).ACL
	s.store.mu.Unlock()
	roles := roleList{"$all"}
	if strings.HasPrefix(wanted.stream, "$") {
		roles = roleList{"$admins"}
	}
	if acl != nil && wanted.write && acl.Write != nil {
		roles = acl.Write
	}
	if acl != nil && !wanted.write && acl.Read != nil {
		roles = acl.Read
	}
	return slices.Contains(roles, "$all") || slices.Contains(roles, user)
}

// accessControl is the part of $acl that this server knows.
type accessControl struct {
	Read  roleList `json:"$r"`
	Write roleList `json:"$w"`
}

// roleList is written as one string or as a list of them.
type roleList []string

func (l *roleList) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*l = roleList{one}
		return nil
	}
	var many []string
	err := json.Unmarshal(data, &many)
	*l = many
	return err
}
