package instance

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

// checked orders a check over the control API, and waits for its end.
func (w *world) checked(n *node, id string) control.CheckReport {
	w.t.Helper()
	operator := w.client(n)
	defer operator.Close()
	var said control.CheckReport
	until(w.t, "the tables are checked", func() bool {
		var err error
		said, err = operator.Check(w.t.Context(), control.CheckOrder{ID: id})
		must(w.t, err)
		return said.Done || said.Error != ""
	})
	if said.ID != id || said.Error != "" || said.Checked != said.Tables {
		w.t.Fatalf("it says %+v", said)
	}
	return said
}

func TestRestoredTablesAreChecked(t *testing.T) {
	from := newWorld(t, nil)
	source := from.start(1)
	from.bootstrap(source)
	db := from.app(source)
	from.exec(db, "CREATE TABLE sound (id INT PRIMARY KEY, v INT)")
	from.exec(db, "CREATE TABLE `od``d name` (id INT PRIMARY KEY)")
	from.exec(db, "CREATE TABLE lost (id INT PRIMARY KEY)")
	from.exec(db, "INSERT INTO sound VALUES (1, 1), (2, 2)")
	dir := storetest.Dir(t)
	s, err := store.Open(dir)
	must(t, err)
	m := from.backUp(source, s)
	var no *control.Refusal
	if err := source.m.StartCheck(control.CheckOrder{ID: "1"}); !errors.As(err, &no) || no.Reason != core.OrderNotAThrowAway {
		t.Errorf("a Cluster of somebody's is checked: %v", err)
	}

	w := from.restoring(dir, "")
	w.kube.edit(func(c *v1alpha1.Cluster) { c.Labels = map[string]string{v1alpha1.LabelVerifies: "db"} })
	one := w.start(1)
	epoch := w.grant("db-1", core.ProofBootstrap, "", "", 0)
	if err := one.m.StartCheck(control.CheckOrder{ID: "1"}); err == nil {
		t.Error("what is not restored yet is checked")
	}
	w.awaitPrimary(one, epoch)
	said := w.checked(one, "1")
	if len(said.Damaged) > 0 || said.Tables < 20 {
		t.Errorf("of sound tables it says %+v", said)
	}
	if said.BackupID != m.ID || said.RestoredUntil.IsZero() || time.Since(said.RestoredUntil) > time.Hour || said.Executed != w.executed(one).String() {
		t.Errorf("it says that it restored %s until %s, %s; want %s", said.BackupID, said.RestoredUntil, said.Executed, m.ID)
	}

	// A table whose file is gone, and one whose file was written over.
	root := one.m.root.DB()
	w.exec(root, "ALTER TABLE app_db.lost DISCARD TABLESPACE")
	w.exec(root, "CREATE TABLE app_db.torn (id INT PRIMARY KEY, v TEXT) ENGINE=MyISAM")
	w.exec(root, "INSERT INTO app_db.torn VALUES (1, REPEAT('a', 200)), (2, REPEAT('b', 200))")
	w.exec(root, "FLUSH TABLES")
	must(t, os.WriteFile(filepath.Join(one.opt.Dirs.Data, "app_db", "torn.MYD"), []byte(strings.Repeat("x", 300)), 0o640))
	if again := w.checked(one, "1"); len(again.Damaged) > 0 {
		t.Errorf("an order that was carried out is carried out again: %+v", again)
	}
	said = w.checked(one, "2")
	var names []string
	for _, d := range said.Damaged {
		names = append(names, d.Table)
		t.Logf("%s: %s", d.Table, d.Message)
	}
	if strings.Join(names, " ") != "app_db.lost app_db.torn" {
		t.Errorf("it found %v", names)
	}
	// Who crashes in between has what it restored on its volume.
	w.crashManager(one)
	one = w.start(1)
	w.awaitPrimary(one, epoch)
	if again := w.checked(one, "3"); again.BackupID != m.ID {
		t.Errorf("after a crash it says %+v", again)
	}
}
