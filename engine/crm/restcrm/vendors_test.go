package restcrm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/crmtest"
	"github.com/leadonce/leadonce/engine/crm/httponce"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
)

// vendor is a small fake of a vendor: what its documentation says that it
// answers, and no more.
type vendor struct {
	file     string
	step     string            // that it is about; "" when the file has none
	before   map[string]string // what the steps before it made
	vars     map[string]string
	isCreate func(r *http.Request) bool
	// key is what a create stores, and what a lookup asks for: the operation id,
	// or the id that is made of it.
	key    func(r *http.Request, body any) string
	hashed bool
	prefix string             // of the vendor's ids
	made   func(l kept) reply // a create that made the lead
	again  func(l kept) reply // one whose key is there; nil: it makes another lead
	listed func(key string, leads []kept) reply

	answers  []crmtest.Answer
	searches []crmtest.Search
}

// kept is a lead of a fake.
type kept struct {
	n   int
	key string
}

func (l kept) id() string { return strconv.Itoa(l.n) }

type reply struct {
	status int
	body   string
	header map[string]string
}

// crmID is the id that the vendor's answers have.
func (v vendor) crmID(l kept) string {
	if v.hashed {
		return l.key
	}
	return v.prefix + l.id()
}

// fake is the server of a vendor.
type fake struct {
	vendor
	web  *httptest.Server
	mu   sync.Mutex
	made []kept
	seen []string // the bodies of creates
}

func newFake(t *testing.T, v vendor) *fake {
	f := &fake{vendor: v}
	f.web = httptest.NewServer(f)
	t.Cleanup(f.web.Close)
	return f
}

func (f *fake) URL() string { return f.web.URL }

// space is the name space of uuid5.
var space = uuid.MustParse("5f0c7b1e-3c55-5f0e-9d37-0b8ad3a0a7e1")

func (f *fake) Leads(_ context.Context, operationID string) (ids []string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.made {
		if l.key == f.stored(operationID) {
			ids = append(ids, f.crmID(l))
		}
	}
	return ids, nil
}

func (f *fake) stored(operationID string) string {
	if f.hashed {
		return uuid.NewSHA1(space, []byte(operationID)).String()
	}
	return operationID
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var body any
	if len(text) > 0 && json.Unmarshal(text, &body) != nil {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	answer := f.answer(r, string(text), f.key(r, body))
	for name, value := range answer.header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(answer.status)
	_, _ = io.WriteString(w, answer.body)
}

func (f *fake) answer(r *http.Request, text, key string) reply {
	f.mu.Lock()
	defer f.mu.Unlock()
	ours := slices.DeleteFunc(slices.Clone(f.made), func(l kept) bool { return l.key != key })
	if !f.isCreate(r) {
		return f.listed(key, ours)
	}
	f.seen = append(f.seen, text)
	if len(ours) > 0 && f.again != nil {
		return f.again(ours[0])
	}
	l := kept{len(f.made) + 1, key}
	f.made = append(f.made, l)
	return f.vendor.made(l)
}

// dig is a member of a JSON value as a text; nothing when it is not there.
func dig(v any, path ...any) string {
	for _, at := range path {
		switch at := at.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[at]
		case int:
			l, _ := v.([]any)
			if at >= len(l) {
				return ""
			}
			v = l[at]
		}
	}
	s, _ := v.(string)
	return s
}

func posts(path string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, path) }
}

// tokenless answers token requests, which go to another host, by itself.
type tokenless struct{ http httponce.Client }

func (s *tokenless) Send(ctx context.Context, r httponce.Request) (httponce.Answer, error) {
	if strings.Contains(r.URL.Path, "token") {
		return httponce.Answer{Status: 200, Body: []byte(`{"access_token":"` + secret + `","expires_in":3600,"token_type":"Bearer"}`)}, nil
	}
	return s.http.Send(ctx, r)
}

const secret = "hunter2-of-the-vendor"

func vendorEnvironment(name string) (string, bool) {
	for _, ending := range []string{"URL", "DOMAIN", "WEBHOOK", "ACCOUNTS"} {
		if strings.HasSuffix(name, ending) {
			return "http://127.0.0.1:1", true
		}
	}
	return secret, true
}

func (f *fake) connect(t testing.TB, url string) (crm.Connector, error) {
	c, err := shipped(t, f.file, restcrm.Config{
		BaseURL: url, Vars: f.vars, Secrets: vendorEnvironment, Sender: &tokenless{},
		Store: restcrm.FileStore{Dir: t.TempDir()}, Settle: 2 * time.Second,
	})
	if err == nil && f.step != "" {
		return connectors(t, c)[f.step], nil
	}
	return c, err
}

func (v vendor) name() string { return strings.TrimSuffix(v.file+"/"+v.step, "/") }

// TestVendors runs the suite over the fake of every vendor: the class's promise
// under faults, and what each documented answer proves.
func TestVendors(t *testing.T) {
	for _, v := range vendors() {
		t.Run(v.name(), func(t *testing.T) {
			t.Parallel()
			f := newFake(t, v)
			crmtest.Run(t, crmtest.Subject{
				Connect:  func(url string) (crm.Connector, error) { return f.connect(t, url) },
				Sandbox:  f,
				IsCreate: v.isCreate,
				Fields:   map[string]string{"name": "Ada \"L\" of the suite", "text": "line one\nline {two} ${three} \\ \u00e9\u4e16"},
				Made:     v.before,
				Answers:  v.answers, Searches: v.searches, Secrets: []string{secret},
			})
		})
	}
}

// TestEveryShippedFileIsTested, and every step of it: one without a fake would be
// shipped on faith.
func TestEveryShippedFileIsTested(t *testing.T) {
	tested := []string{"crmsim", "tryton", "tryton-stock"}
	for _, v := range vendors() {
		tested = append(tested, v.name())
	}
	var all []string
	for _, name := range restcrm.Shipped() {
		definition, err := restcrm.LoadShipped(name)
		if err != nil {
			t.Fatal(err)
		}
		steps := definition.Steps()
		if len(steps) == 0 {
			all = append(all, name)
		}
		for _, step := range steps {
			all = append(all, name+"/"+step)
		}
	}
	slices.Sort(tested)
	slices.Sort(all)
	if !slices.Equal(all, tested) {
		t.Errorf("shipped are %v, tested are %v", all, tested)
	}
}

func vendors() []vendor {
	return []vendor{
		dataverse(), salesforce(), salesforceUI(), hubspot("hubspot", "", "deals"), odoo(), monday(), bitrix24(),
		kommo(), zoho(), suitecrm(), espocrm(), twenty(),
		pipedriveContact(), pipedriveLead(), hubspotContact(), hubspotLead(),
	}
}

func ok(format string, args ...any) reply {
	return reply{status: 200, body: fmt.Sprintf(format, args...)}
}

// each joins what f says of every lead.
func each(leads []kept, f func(kept) string) string {
	var out []string
	for _, l := range leads {
		out = append(out, f(l))
	}
	return strings.Join(out, ",")
}

func always(body string) func(string) string { return func(string) string { return body } }
