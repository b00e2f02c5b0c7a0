//go:build linux

package trytontest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// TestWriteTheSeed makes testdata/crm.dump anew: Tryton with the module, a company,
// and no opportunity. It takes some minutes, for Tryton asks PostgreSQL much when it
// makes its tables.
func TestWriteTheSeed(t *testing.T) {
	if os.Getenv("LEADONCE_TRYTON_SEED") == "" {
		t.Skip("set LEADONCE_TRYTON=1 LEADONCE_TRYTON_SEED=write to make the seed anew")
	}
	p := Open(t)
	c, err := p.prepare(t.Context(), Unique)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.write("admin", Password+"\n"); err != nil {
		t.Fatal(err)
	}
	env := append(c.environment(), "TRYTONPASSFILE="+filepath.Join(p.dir, "admin"))
	if _, err := p.run(t.Context(), env, nil, "trytond-admin", "-c", c.config(), "-d", c.database(),
		"-u", "sale_opportunity", "leadonce_external_id", "--activate-dependencies", "--email", "admin@example.invalid"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Kill)
	if err := c.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.found(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Kill()
	dump, err := p.run(t.Context(), nil, nil, append([]string{p.tool("pg_dump")}, append(p.at(c.database()), "-Fc", "-Z9", "--no-owner")...)...)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("testdata/crm.dump", []byte(dump), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", len(dump))
}

// found founds the company, and makes it the administrator's.
func (c *CRM) found(ctx context.Context) error {
	none := map[string]any{}
	create := func(model string, values map[string]any) (int, error) {
		var ids []int
		if err := call(ctx, c.URL()+"/", &ids, "model."+model+".create", []any{values}, none); err != nil {
			return 0, err
		}
		return ids[0], nil
	}
	currency, err := create("currency.currency", map[string]any{"name": "Euro", "symbol": "€", "code": "EUR"})
	if err != nil {
		return err
	}
	party, err := create("party.party", map[string]any{"name": "Example Ltd"})
	if err != nil {
		return err
	}
	company, err := create("company.company", map[string]any{"party": party, "currency": currency})
	if err != nil {
		return err
	}
	return call(ctx, c.URL()+"/", nil, "model.res.user.write", []int{1},
		map[string]any{"companies": []any{[]any{"add", []int{company}}}, "company": company}, none)
}
