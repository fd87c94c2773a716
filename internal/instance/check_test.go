package instance

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/verify"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/recovery"
	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

// checked orders a check over the control API, and waits for its end.
func (w *world) checked(n *node, id string, sums ...string) control.CheckReport {
	w.t.Helper()
	operator := w.client(n)
	defer operator.Close()
	var said control.CheckReport
	until(w.t, "the tables are checked", func() bool {
		var err error
		said, err = operator.Check(w.t.Context(), control.CheckOrder{ID: id, Sums: sums})
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
	if err := source.m.checker.StartCheck(control.CheckOrder{ID: "1"}); !errors.As(err, &no) ||
		no.Reason != core.OrderNotAThrowAway {
		t.Errorf("a Cluster of somebody's is checked: %v", err)
	}

	w := from.restoring(dir, "")
	w.kube.edit(func(c *v1alpha1.Cluster) { c.Labels = map[string]string{v1alpha1.LabelVerifies: "db"} })
	one := w.start(1)
	epoch := w.grant("db-1", core.ProofBootstrap, "", "", 0)
	if err := one.m.checker.StartCheck(control.CheckOrder{ID: "1"}); err == nil {
		t.Error("what is not restored yet is checked")
	}
	w.awaitPrimary(one, epoch)
	said := w.checked(one, "1")
	if len(said.Damaged) > 0 || said.Tables < 20 {
		t.Errorf("of sound tables it says %+v", said)
	}
	if said.BackupID != m.ID || said.RestoredUntil.IsZero() || time.Since(said.RestoredUntil) > time.Hour ||
		!said.Executed.Equal(w.executed(one)) {
		t.Errorf("it says that it restored %s until %s, %s; want %s", said.BackupID, said.RestoredUntil,
			said.Executed, m.ID)
	}

	// A table whose file is gone, and one whose file was written over.
	root := one.m.root.DB()
	w.exec(root, "ALTER TABLE app_db.lost DISCARD TABLESPACE")
	w.exec(root, "CREATE TABLE app_db.torn (id INT PRIMARY KEY, v TEXT) ENGINE=MyISAM")
	w.exec(root, "INSERT INTO app_db.torn VALUES (1, REPEAT('a', 200)), (2, REPEAT('b', 200))")
	w.exec(root, "FLUSH TABLES")
	must(t, os.WriteFile(filepath.Join(one.opt.Dirs.Data, "app_db", "torn.MYD"), []byte(strings.Repeat("x", 300)),
		0o640))
	if again := w.checked(one, "1"); len(again.Damaged) > 0 {
		t.Errorf("an order that was carried out is carried out again: %+v", again)
	}
	said = w.checked(one, "2")
	if len(said.Damaged) != 2 || said.Damaged[0].Table != "app_db.lost" || said.Damaged[1].Table != "app_db.torn" {
		t.Errorf("it found %+v", said.Damaged)
	}
	// Who crashes in between has what it restored on its volume.
	w.crashManager(one)
	one = w.start(1)
	w.awaitPrimary(one, epoch)
	if again := w.checked(one, "3"); again.BackupID != m.ID {
		t.Errorf("after a crash it says %+v", again)
	}
}

// everyType has a column of each type, and its rows differ in a value, a NULL or an empty text.
const everyType = "CREATE TABLE every (id INT PRIMARY KEY, `odd``name` VARCHAR(20) CHARACTER SET latin1, u " +
	"VARCHAR(20) COLLATE utf8mb4_bin," +
	" b VARBINARY(9), l LONGBLOB, d DECIMAL(20,5), f FLOAT, g DOUBLE, t TIMESTAMP(6) NULL, y YEAR, h TIME(3), " +
	"bits BIT(9), j JSON," +
	" p POINT, e ENUM('a','b'), s SET('x','y'), v INT GENERATED ALWAYS AS (id + 1) VIRTUAL, " +
	"hidden INT INVISIBLE DEFAULT 7)"

const everyRow = "(1, 'café', '日本', x'00ff', REPEAT('l', 70000), 1.5, 0.1, 1e300, '2026-11-24 03:04:05.678901', " +
	"2026, '-12:34:56.789', b'101'," +
	" '{\"a\": [1, null]}', ST_GeomFromText('POINT(1 2)'), 'b', 'x,y')"

// changesAndBack are of what the test below has written: each second one undoes the one before it.
var changesAndBack = []string{
	"UPDATE app_db.pairs SET b = 3 - b WHERE a IN (1, 2) AND b < 3", "UPDATE app_db.pairs SET b = 3 - b WHERE a IN " +
		"(1, 2) AND b < 3",
	"UPDATE app_db.pairs SET a = 3, b = NULL WHERE b = 3", "UPDATE app_db.pairs SET b = 3, a = NULL WHERE b IS NULL",
	"UPDATE app_db.every SET u = NULL WHERE id = 3", "UPDATE app_db.every SET u = '' WHERE id = 3",
	"UPDATE app_db.every SET hidden = 8 WHERE id = 2", "UPDATE app_db.every SET hidden = 7 WHERE id = 2",
	"UPDATE app_db.every SET t = t + INTERVAL 1 MICROSECOND WHERE id = 1", "UPDATE app_db.every SET t = t - INTERVAL " +
		"1 MICROSECOND WHERE id = 1",
	"DELETE FROM app_db.pairs WHERE a = 2 LIMIT 1", "INSERT INTO app_db.pairs VALUES (2, 2)",
}

// makeDotted makes two tables whose names are the same once schema and table are joined by a dot.
func (w *world) makeDotted(db *sql.DB) {
	for _, statement := range []string{"CREATE DATABASE weird", "CREATE DATABASE `weird.db`",
		"CREATE TABLE weird.`db.t` (id INT PRIMARY KEY)", "CREATE TABLE `weird.db`.t (id INT PRIMARY KEY)",
		"INSERT INTO weird.`db.t` VALUES (1)", "INSERT INTO `weird.db`.t VALUES (1), (2)"} {
		w.exec(db, statement)
	}
}

func TestRowsAddUpToTheSameOnARestoredServer(t *testing.T) {
	inAll(t)
	from := newWorld(t, archives)
	dir := storetest.Dir(t)
	from.files(dir, "archive")
	one := from.start(1)
	from.bootstrap(one)
	db := from.app(one)
	from.exec(db, everyType)
	from.exec(db, "CREATE TABLE pairs (a INT, b INT) PARTITION BY HASH(a) PARTITIONS 3")
	from.exec(db, "CREATE TABLE busy (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
	s, err := store.Open(dir)
	must(t, err)
	from.backUp(one, s)
	columns := "(id, `odd``name`, u, b, l, d, f, g, t, y, h, bits, j, p, e, s)"
	from.exec(db, "INSERT INTO every "+columns+" VALUES "+everyRow)
	from.exec(db, "INSERT INTO every (id) VALUES (2), (3)")
	from.exec(db, "UPDATE every SET u = '' WHERE id = 3")
	from.exec(db, "INSERT INTO pairs VALUES (1, 1), (2, 2), (2, 2), (NULL, 3)")
	from.makeDotted(one.m.root.DB())
	stop := from.writes(db, "INSERT INTO busy (v) VALUES (1)")
	operator := from.client(one)
	defer operator.Close()
	var said control.CheckReport
	until(t, "a sample is taken", func() bool {
		said, err = operator.Check(t.Context(), control.CheckOrder{ID: "s1", Sample: true})
		must(t, err)
		return said.Done || said.Error != ""
	})
	stop()
	if said.Sample == nil || said.Sample.Changed != 1 || len(said.Sample.Sums) != 4 {
		t.Fatalf("it says %+v, %+v", said, said.Sample)
	}
	slices.SortFunc(said.Sample.Sums, func(a, b verify.Sum) int { return strings.Compare(a.Table, b.Table) })
	from.awaitArchived(one)
	from.crashManager(one)

	w := from.restoringTo(dir, "", recovery.Target{GTID: said.Sample.Executed})
	w.kube.edit(func(c *v1alpha1.Cluster) { c.Labels = map[string]string{v1alpha1.LabelVerifies: "db"} })
	restored := w.start(1)
	w.awaitPrimary(restored, w.grant("db-1", core.ProofBootstrap, "", "", 0))
	if is := w.executed(restored); !is.Equal(gtid.MustParse(said.Sample.Executed)) {
		t.Errorf("it is restored to %s, and the sample is of %s", is, said.Sample.Executed)
	}
	sums := func(id string) []verify.Sum {
		return w.checked(restored, id, "`weird.db`.`t`", "`weird`.`db.t`", "app_db.every", "app_db.pairs",
			"app_db.nowhere").Sums
	}
	if is := sums("1"); !slices.Equal(is, said.Sample.Sums) {
		t.Errorf("restored, rows add up to %+v; they were %+v", is, said.Sample.Sums)
	}
	// Each change is seen, and is undone by the one after it.
	root := restored.m.root.DB()
	for i, change := range changesAndBack {
		w.exec(root, change)
		if same, should := slices.Equal(sums(fmt.Sprint("after", i)), said.Sample.Sums), i%2 == 1; same != should {
			t.Errorf("after %s the rows add up to the same: %t", change, same)
		}
	}
}
