//go:build linux

package trytontest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// here is the folder of this file.
func here() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(file)
}

// Password is that of the seed's user admin.
const Password = "leadonce-trial"

// Variant is a Tryton with or without our module.
type Variant struct {
	// Connector is the description that fits it.
	Connector string
	// Key is the column of sale_opportunity that has the operation id.
	Key string

	module bool
}

// The variants.
var (
	Unique = Variant{"tryton", "external_id", true}
	Stock  = Variant{"tryton-stock", "reference", false}
)

// withoutModule makes the seed what it was before the module came.
const withoutModule = `
	ALTER TABLE sale_opportunity DROP COLUMN external_id;
	ALTER TABLE sale_opportunity__history DROP COLUMN external_id;
	DELETE FROM ir_model_field WHERE module = 'leadonce_external_id';
	DELETE FROM ir_model_data WHERE module = 'leadonce_external_id';
	DELETE FROM ir_module WHERE name = 'leadonce_external_id';`

// CRM is a trytond over a database of its own.
type CRM struct {
	postgres *Postgres
	variant  Variant
	port     int
	running  *process
}

// Start restores the seed, without any opportunity, and starts trytond over it. It
// ends with the test.
func (p *Postgres) Start(t testing.TB, v Variant) *CRM {
	t.Helper()
	c, err := p.start(t, v)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (p *Postgres) start(t testing.TB, v Variant) (*CRM, error) {
	c, err := p.prepare(t.Context(), v)
	if err != nil {
		return nil, err
	}
	seed, err := os.ReadFile(filepath.Join(here(), "testdata", "crm.dump"))
	if err != nil {
		return nil, err
	}
	restore := append([]string{p.tool("pg_restore")}, append(p.at(c.database()), "--no-owner", "--exit-on-error")...)
	if _, err := p.run(t.Context(), nil, seed, restore...); err != nil {
		return nil, err
	}
	if !v.module {
		if _, err := p.query(t.Context(), c.database(), withoutModule); err != nil {
			return nil, err
		}
	}
	t.Cleanup(c.Kill)
	return c, c.Restart(t.Context())
}

// prepare makes an empty database, and what trytond needs to know of it.
func (p *Postgres) prepare(ctx context.Context, v Variant) (*CRM, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	c := &CRM{postgres: p, variant: v, port: port}
	if _, err := p.query(ctx, "postgres", "CREATE DATABASE "+c.database()+" TEMPLATE template0 ENCODING 'UTF8'"); err != nil {
		return nil, err
	}
	if err := p.write(c.config(), fmt.Sprintf("[database]\nuri = postgresql://postgres:%s@127.0.0.1:%d/\npath = %s\n[web]\nlisten = 127.0.0.1:%d\n",
		p.password, p.port, p.dir, port)); err != nil {
		return nil, err
	}
	return c, c.unpack()
}

// unpack writes the module where the environment tells Python to look.
func (c *CRM) unpack() error {
	if !c.variant.module {
		return nil
	}
	source := os.DirFS(here())
	return fs.WalkDir(source, "module", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(source, name)
		if err != nil {
			return err
		}
		return c.postgres.write(name, string(text))
	})
}

func (c *CRM) environment() []string {
	if !c.variant.module {
		return nil
	}
	return []string{"PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH=" + filepath.Join(c.postgres.dir, "module")}
}

// database is the name, which is in every URL too; a port is of one CRM.
func (c *CRM) database() string { return fmt.Sprintf("crm%d", c.port) }

func (c *CRM) config() string { return c.database() + ".conf" }

// Root is the address of trytond.
func (c *CRM) Root() string { return fmt.Sprintf("http://127.0.0.1:%d", c.port) }

// URL is the address of the database in trytond, as crm.url wants it.
func (c *CRM) URL() string { return c.Root() + c.Path() }

// Path is what follows the address of trytond in URL.
func (c *CRM) Path() string { return "/" + c.database() }

// Kill sends SIGKILL to trytond, and returns when it is gone.
func (c *CRM) Kill() {
	if c.running != nil {
		c.running.end(os.Kill)
	}
}

// Restart starts trytond, and returns when it answers.
func (c *CRM) Restart(ctx context.Context) (err error) {
	c.running, err = c.postgres.launch(c.database(), c.environment(), syscall.SIGKILL,
		"trytond", "-c", c.config(), "-d", c.database())
	if err != nil {
		return err
	}
	return c.running.await(ctx, func(ctx context.Context) error {
		return call(ctx, c.Root()+"/", nil, "common.server.version")
	})
}

// Leads are the opportunities in the database, by the column with the operation id;
// those without one are under the empty text. trytond is not asked.
func (c *CRM) Leads(ctx context.Context) (map[string][]string, error) {
	out, err := c.postgres.query(ctx, c.database(), fmt.Sprintf("SELECT coalesce(%s, ''), id FROM sale_opportunity ORDER BY id", c.variant.Key))
	if err != nil {
		return nil, err
	}
	leads := map[string][]string{}
	for line := range strings.Lines(out) {
		key, id, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		leads[key] = append(leads[key], id)
	}
	return leads, nil
}

// call calls a method as admin, and reads its result into the value, if there is one.
func call(ctx context.Context, url string, result any, method string, params ...any) error {
	question, err := json.Marshal(map[string]any{"method": method, "params": append([]any{}, params...)})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(question))
	if err != nil {
		return err
	}
	r.SetBasicAuth("admin", Password)
	r.Header.Set("Content-Type", "application/json")
	r.Close = true
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", method, answer.Status, lastLine(body))
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(body, result)
}
