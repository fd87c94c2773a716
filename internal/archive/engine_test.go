package archive

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
)

// TestRowsOfOtherEnginesAreLeftOut: a backup holds no rows of tables that are not InnoDB's. Changes
// of such rows do not end a replay, and cost no row of InnoDB, whatever tables are called meanwhile.
func TestRowsOfOtherEnginesAreLeftOut(t *testing.T) {
	a, b := newServer(t), newServer(t)
	a.Initialize()
	b.copyOf(a)
	a.start(7)
	b.start(8)
	const tables = `CREATE DATABASE d; CREATE DATABASE ` + "`e.d`" + `;
		CREATE TABLE d.orders (id INT PRIMARY KEY, n INT);
		CREATE TABLE d.sessions (id INT PRIMARY KEY, n INT) ENGINE=MEMORY;
		CREATE TABLE ` + "`e.d`.`we``ird; t`" + ` (id INT PRIMARY KEY, n INT) ENGINE=MyISAM;
		CREATE TABLE d.later (id INT PRIMARY KEY, n INT) ENGINE=MyISAM;
		CREATE TABLE d.still (id INT PRIMARY KEY, n INT) ENGINE=MyISAM`
	for _, s := range []*server{a, b} {
		s.DB.SetMaxOpenConns(1)
		s.Exec("SET SESSION sql_log_bin = 0")
		script(s, tables)
		s.Exec("SET SESSION sql_log_bin = 1")
	}
	for _, name := range []string{"d.sessions", "`e.d`.`we``ird; t`", "d.later"} {
		a.Exec("SET SESSION sql_log_bin = 0")
		a.Exec("INSERT INTO " + name + " VALUES (1, 0), (2, 0)")
		a.Exec("SET SESSION sql_log_bin = 1")
	}
	m := newMemory()
	stop, shipper := shipping(t, a, m, gtid.Set{})
	script(a, `INSERT INTO d.orders VALUES (1, 0); UPDATE d.sessions SET n = 1; INSERT INTO d.orders VALUES (2, 0);
		DELETE FROM `+"`e.d`.`we``ird; t`"+` WHERE id = 1; UPDATE d.sessions SET n = 2;
		RENAME TABLE d.sessions TO d.old, d.orders TO d.sessions;
		UPDATE d.sessions SET n = 3; INSERT INTO d.sessions VALUES (3, 3); UPDATE d.old SET n = 4;
		CREATE TABLE d.fresh (id INT PRIMARY KEY, n INT) ENGINE=MyISAM;
		INSERT INTO d.fresh VALUES (1, 1); UPDATE d.fresh SET n = 2;
		UPDATE d.later SET n = 5; DROP TABLE d.old; ALTER TABLE d.later ENGINE=InnoDB;
		INSERT INTO d.later VALUES (3, 5); INSERT INTO d.sessions VALUES (4, 4)`)
	waitArchived(t, shipper, a.Executed())
	stop()

	a.DB.SetMaxOpenConns(0)
	b.DB.SetMaxOpenConns(0)
	r := replayAll(t, b, m)
	for _, name := range []string{"d.sessions", "d.fresh"} {
		const rows = "SELECT GROUP_CONCAT(id, ':', n ORDER BY id) FROM "
		if got, want := b.Text(rows+name), a.Text(rows+name); got != want {
			t.Errorf("%s has %s, and had %s", name, got, want)
		}
	}
	if got := b.Text("SELECT GROUP_CONCAT(id) FROM d.later"); got != "3" {
		t.Errorf("d.later has the rows %s", got)
	}
	got, err := r.Lacking(t.Context())
	must(t, err)
	const weird = "`e.d`.`we``ird; t`"
	if want := (Lacking{Empty: []string{weird, "d.still"}, Converted: []string{"d.later", "d.sessions"},
		LeftOut: []string{weird, "d.later", "d.old", "d.sessions"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	aConvertedTableIsNotIgnored(t, a, b, m)
}

// aConvertedTableIsNotIgnored: once it is InnoDB's, a row that it lacks ends the replay by name.
func aConvertedTableIsNotIgnored(t *testing.T, a, b *server, m *memory) {
	stop, shipper := shipping(t, a, m, gtid.Set{})
	a.Exec("UPDATE d.later SET n = 6 WHERE id = 1")
	waitArchived(t, shipper, a.Executed())
	stop()
	archive, err := Load(t.Context(), m, prefix)
	must(t, err)
	plan, err := place(m).Choose(t.Context(), &archive, facts.Base{Epoch: 1, End: b.Executed()}, facts.Target{})
	must(t, err)
	r := &Replay{Place: place(m), DB: b.DB}
	if err := r.Run(t.Context(), plan); !errors.Is(err, ApplierFailed) || !strings.Contains(err.Error(), "d.later") {
		t.Errorf("got %v", err)
	}
}

func replayAll(t *testing.T, b *server, m *memory) *Replay {
	t.Helper()
	archive, err := Load(t.Context(), m, prefix)
	must(t, err)
	plan, err := place(m).Choose(t.Context(), &archive, facts.Base{Epoch: 1}, facts.Target{})
	must(t, err)
	r := &Replay{Place: place(m), DB: b.DB}
	must(t, r.Run(t.Context(), plan))
	return r
}

// script runs statements, none of which has "; " followed by a letter in a name.
func script(s *server, all string) {
	s.T.Helper()
	for _, statement := range strings.Split(strings.ReplaceAll(all, "; t`", "\x00"), ";") {
		if _, err := s.DB.ExecContext(context.Background(), strings.ReplaceAll(statement, "\x00", "; t`")); err != nil {
			s.T.Fatalf("%s: %v", statement, err)
		}
	}
}
