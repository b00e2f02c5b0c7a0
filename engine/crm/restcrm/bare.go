package restcrm

import (
	"net/http"

	"github.com/leadonce/leadonce/engine/crm/httponce"
)

// A gateway or a proxy answers for the CRM, under these statuses and with a page of its
// own, whatever the CRM has done with the request.
var gateway = []int{
	http.StatusRequestTimeout, http.StatusInternalServerError, http.StatusBadGateway,
	http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

// page is the body of such an answer.
const page = "<html><body>gateway</body></html>"

// What no such answer proves, of a create and of a lookup, and what would be wrong.
var (
	unprovenCreate = map[string]string{
		exists:       "a lead that is not there would be taken for made",
		refused:      "a lead that was made would end as a dead letter",
		notApplied:   "a lead that was made would be made again",
		unauthorized: "a lead that was made would be made again",
	}
	unprovenLookup = map[string]string{none: "a lead that was made would not be found, and be made again"}
)

// checkBare refuses rules under which an answer that is not the CRM's proves something.
// One without a body proves as little as a page does.
func (l *loader) checkBare(rules []*rule, class string, unproven map[string]string, statuses []int) {
	for _, status := range statuses {
		for _, body := range []string{"", page} {
			answer := httponce.Answer{Status: status, Body: []byte(body)}
			env := withAnswer(map[string]any{
				"vars": map[string]any{}, "key": "key", "class": class, "absent": absence{}, "op": map[string]string{}, "steps": map[string]string{},
			}, answer)
			r, err := first(rules, env)
			if r == nil || err != nil || unproven[r.is] == "" {
				continue
			}
			l.fail(r.node, "HTTP %d without a word of the CRM's would be %s, and a proxy says that too: %s; ask for a code or a member of the body as well", status, r.is, unproven[r.is])
		}
	}
}
