package projections

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// ErrOvertaken: another rebuild of the same file began while this one ran, and
// goes on alone.
var ErrOvertaken = errors.New("another rebuild of the read models has begun")

// Rebuild makes the models anew from the whole log. It fills a second set of
// tables, beside which readers and feeders use the live one, and lets it take
// the live one's place in one transaction; then it catches up with what came
// meanwhile. Cut short, it leaves the live set as it was, and the next rebuild
// clears away what it left. The file has both sets for that time.
func (s *Store) Rebuild(ctx context.Context, log eventlog.Log, progress func(Progress)) error {
	w, err := newWriter(ctx, s.db, nextSet)
	if err != nil {
		return s.wrap("rebuild", err)
	}
	err = s.rebuild(ctx, w, log, progress)
	if err = errors.Join(err, w.close()); err != nil {
		return s.wrap("rebuild", err)
	}
	return s.CatchUp(ctx, log, nil)
}

func (s *Store) rebuild(ctx context.Context, w *writer, log eventlog.Log, progress func(Progress)) error {
	if err := prepareNext(ctx, w); err != nil {
		return err
	}
	err := s.pump(ctx, pumping{
		write:  func(ctx context.Context, b batch) (int, error) { return w.write(ctx, b, s.beforeCommit) },
		source: readAll(log, eventlog.Start), most: s.rebuildMost, full: true, progress: progress,
	})
	if err != nil {
		return err
	}
	return transact(ctx, w.conn, func(ctx context.Context) error {
		if err := w.reload(ctx); err != nil {
			return err
		}
		return replaceLive(ctx, w.conn)
	})
}

// prepareNext makes an empty second set, which is w's from then on.
func prepareNext(ctx context.Context, w *writer) error {
	return transact(ctx, w.conn, func(ctx context.Context) error {
		if err := w.reload(ctx); err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if err := drop(ctx, w.conn, isNext); err != nil {
			return err
		}
		if _, err := w.conn.ExecContext(ctx, tablesOf(nextSet)); err != nil {
			return fmt.Errorf("create the tables: %w", err)
		}
		for _, query := range []string{"DELETE FROM checkpoints WHERE name = ?", insertHead} {
			if _, err := w.conn.ExecContext(ctx, query, checkpointName(nextSet)); err != nil {
				return err
			}
		}
		h, err := w.readHead(ctx, nextSet)
		w.owned = h.generation
		return err
	})
}

func isNext(table string) bool { return strings.HasPrefix(table, nextSet) }

// replaceLive drops the live set and renames the second one. Its indexes are
// made here.
func replaceLive(ctx context.Context, conn *sql.Conn) error {
	err := drop(ctx, conn, func(name string) bool { return !isNext(name) && name != "checkpoints" })
	if err != nil {
		return err
	}
	objects, err := schemaObjects(ctx, conn)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if live, ok := strings.CutPrefix(o.name, nextSet); ok {
			if _, err := conn.ExecContext(ctx, "ALTER TABLE "+o.name+" RENAME TO "+live); err != nil {
				return err
			}
		}
	}
	if _, err := conn.ExecContext(ctx, derived()); err != nil {
		return fmt.Errorf("create the indexes: %w", err)
	}
	if _, err := conn.ExecContext(ctx, "DELETE FROM checkpoints WHERE name = ?", checkpointName(liveSet)); err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, "UPDATE checkpoints SET name = ? WHERE name = ?", checkpointName(liveSet), checkpointName(nextSet))
	return err
}
