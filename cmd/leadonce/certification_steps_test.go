package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const contactThenLead = `name: two
base_url: http://127.0.0.1:1
steps:
  - name: contact
    class: unique_create
    create:
      path: /contacts
      body: {external_id: "${key}"}
      outcome:
        - {when: status == 201, is: created, id: body.id}
        - {when: status == 409, is: exists, id: body.id}
  - name: lead
    class: none
    create:
      path: /leads
      body: {external_id: "${key}", contact: "${steps.contact}"}
      outcome:
        - {when: status == 201, is: created, id: body.id}
`

// TestAStepPromises: a lead that promises nothing is no certificate for its contact.
func TestAStepPromises(t *testing.T) {
	for class, certified := range map[string]bool{"unique_create": false, "none": true} {
		config := defaultConfig()
		config.DataDir = t.TempDir()
		path := filepath.Join(t.TempDir(), "two.yaml")
		text := strings.Replace(contactThenLead, "unique_create", class, 1)
		if class == "none" {
			text = strings.Replace(text, "        - {when: status == 409, is: exists, id: body.id}\n", "", 1)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		config.CRM = crmConfig{Connector: path, Class: "none"}
		if got, err := config.checkTrust(); (err == nil) != certified || got.certified != certified {
			t.Errorf("contact %s: %+v, %v", class, got, err)
		}
	}
}
