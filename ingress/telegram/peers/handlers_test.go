//go:build unix

package peers

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"io"
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/leadonce/leadonce/ingress/telegram/telegramtest"
)

// The tables of the textbook: jsonb is what a tutorial keeps an update in, bytea
// is what costs PostgreSQL least.
const updatesTables = `
CREATE TABLE updates (
	bot_id      bigint      NOT NULL,
	update_id   bigint      NOT NULL,
	received_at timestamptz NOT NULL DEFAULT now(),
	body        jsonb       NOT NULL,
	PRIMARY KEY (bot_id, update_id)
);
CREATE TABLE lean_updates (
	bot_id    bigint NOT NULL,
	update_id bigint NOT NULL,
	body      bytea  NOT NULL,
	PRIMARY KEY (bot_id, update_id)
)`

// save makes one update durable, or finds that it is.
type save func(ctx context.Context, updateID int64, body []byte) error

// webhook is a handler as one finds it in tutorials.
func webhook(save save) http.Handler {
	router := chi.NewRouter()
	router.Post("/telegram/{bot}", func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get(telegramtest.SecretHeader)), []byte(secret)) != 1 {
			http.Error(w, "unauthorized", http.StatusUnauthorized)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, "bad request", http.StatusBadRequest)
			return
		}
		var update struct {
			ID int64 `json:"update_id"`
		}
		if err := json.Unmarshal(body, &update); err != nil {
			http.Error(w, "bad request", http.StatusBadRequest)
			return
		}
		if err := save(r.Context(), update.ID, body); err != nil {
			http.Error(w, "try again", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusOK)
	})
	return router
}

// textbook saves a row.
func textbook(pool *pgxpool.Pool) (save, error) {
	return insert(pool, "INSERT INTO updates (bot_id, update_id, body) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"), nil
}

// lean saves a row that costs less.
func lean(pool *pgxpool.Pool) (save, error) {
	return insert(pool, "INSERT INTO lean_updates (bot_id, update_id, body) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"), nil
}

func insert(pool *pgxpool.Pool, statement string) save {
	return func(ctx context.Context, id int64, body []byte) error {
		_, err := pool.Exec(ctx, statement, int64(bot), id, body)
		return err
	}
}

// received is a job of River's; two with one bot and update_id are one.
type received struct {
	Bot      int64           `json:"bot" river:"unique"`
	UpdateID int64           `json:"update_id" river:"unique"`
	Update   json.RawMessage `json:"update"`
}

func (received) Kind() string { return "received" }

// uniqueInsert saves a job of River's.
func uniqueInsert(pool *pgxpool.Pool) (save, error) {
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{})
	if err != nil {
		return nil, err
	}
	once := &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}}
	return func(ctx context.Context, id int64, body []byte) error {
		_, err := client.Insert(ctx, received{bot, id, body}, once)
		return err
	}, nil
}

// migrate makes the tables of all.
func migrate(ctx context.Context, pool *pgxpool.Pool) error {
	if _, err := pool.Exec(ctx, updatesTables); err != nil {
		return err
	}
	migrator, err := rivermigrate.New[pgx.Tx](riverpgxv5.New(pool), nil)
	if err != nil {
		return err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}
