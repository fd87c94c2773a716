package binlog

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"cnmsql.co/internal/gtid"
)

// real is the UUID of the server (9.7.4) that wrote the logs under testdata: writes.bin
// while it took writes, maintenance.bin while it was read-only, by ordinary users.
const real = "ed99f45c-e6c0-11f1-8503-02fc00000001"

func indexOf(t *testing.T, logs ...[]byte) string {
	t.Helper()
	dir, index := t.TempDir(), ""
	for i, log := range logs {
		name := filepath.Join(dir, string(rune('a'+i)))
		if err := os.WriteFile(name, log, 0o600); err != nil {
			t.Fatal(err)
		}
		index += name + "\n"
	}
	path := filepath.Join(dir, "binlog.index")
	if err := os.WriteFile(path, []byte(index), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func fileOf(t *testing.T, name string) []byte {
	t.Helper()
	log, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func TestMaintenanceIsToldFromWritesInTheLogsOfAServer(t *testing.T) {
	index := indexOf(t, fileOf(t, "writes.bin"), fileOf(t, "maintenance.bin"))
	wanted := gtid.MustParse(real + ":1-14")
	span, err := Times(context.Background(), index, wanted, 1<<20)
	if err != nil || !span.Found.Equal(wanted) {
		t.Fatalf("found %s: %v", span.Found, err)
	}
	if want := gtid.MustParse(real + ":8-14"); !span.Maintenance.Equal(want) {
		t.Errorf("maintenance are %s, not %s", span.Maintenance, want)
	}
	if len(span.Statements) != maxStatements || !slices.Contains(span.Statements, "create database d") {
		t.Errorf("of the others it tells %q", span.Statements)
	}
	half := fileOf(t, "maintenance.bin")
	half = half[:len(half)-80] // a crash left half of the last statement
	span, err = Times(context.Background(), indexOf(t, half), wanted, 1<<20)
	if want := gtid.MustParse(real + ":8-13"); err != nil || !span.Maintenance.Equal(want) {
		t.Errorf("of half a log maintenance are %s, not %s (%v)", span.Maintenance, want, err)
	}
	span, err = Times(context.Background(), indexOf(t, fileOf(t, "maintenance.bin")), wanted, 400)
	if want := gtid.MustParse(real + ":8"); err != nil || !want.Contains(span.Maintenance) {
		t.Errorf("of what was read maintenance are %s (%v)", span.Maintenance, err)
	}
}

// query makes a Query event.
func query(text string, code uint16) []byte {
	body := make([]byte, queryHead, queryHead+64+len(text))
	body[offsetSchemaSize] = 1
	binary.LittleEndian.PutUint16(body[offsetQueryError:], code)
	binary.LittleEndian.PutUint16(body[offsetStatusSize:], 3)
	return append(append(append(body, 1, 2, 3), 'd', 0), text...)
}

func TestWhatIsNoMaintenanceForSure(t *testing.T) {
	begin := transaction(t, 1)[:headerSize+gtidBodySize+21]
	format := func(alg byte) []byte { return event(typeFormat, append(make([]byte, 90), alg, 0, 0, 0, 0)) }
	bare := func(text string) []byte { return event(typeQuery, query(text, 0)) }
	for name, c := range map[string]struct {
		alg    byte
		events [][]byte
		is     bool
	}{
		"a repair":             {0, [][]byte{bare("Repair  NO_WRITE TABLE t")}, false},
		"one as it is written": {0, [][]byte{bare(" repair table `d`.`t`, u quick\n")}, true},
		"a histogram": {0,
			[][]byte{bare("ANALYZE TABLE t UPDATE HISTOGRAM ON a, b WITH 16 BUCKETS")}, true},
		"an analyze of data": {0,
			[][]byte{bare("ANALYZE TABLE t UPDATE HISTOGRAM ON a USING DATA '{}'")}, false},
		"a flush":                               {0, [][]byte{bare("FLUSH ERROR LOGS")}, true},
		"a flush of anything else":              {0, [][]byte{bare("FLUSH FIREWALL")}, false},
		"a repair that may lose rows":           {0, [][]byte{bare("REPAIR TABLE t USE_FRM")}, false},
		"a write":                               {0, [][]byte{bare("DELETE FROM t")}, false},
		"a write behind it":                     {0, [][]byte{bare("FLUSH STATUS; DELETE FROM t")}, false},
		"a write in a comment that is executed": {0, [][]byte{bare("ANALYZE TABLE t /*! , u */")}, false},
		"with a checksum": {1,
			[][]byte{event(typeQuery, append(query("FLUSH STATUS", 0), 1, 2, 3, 4))}, true},
		"with one that nobody knows":             {7, [][]byte{bare("FLUSH STATUS")}, false},
		"it ended with an error":                 {0, [][]byte{event(typeQuery, query("REPAIR TABLE t", 1290))}, false},
		"a transaction that begins with a flush": {0, [][]byte{bare("FLUSH STATUS"), bare("DELETE FROM t")}, false},
		"rows before it":                         {0, [][]byte{event(30, []byte("rows")), bare("FLUSH STATUS")}, false},
		"no event at all":                        {0, nil, false},
		"a compressed transaction":               {0, [][]byte{event(40, []byte("FLUSH STATUS"))}, false},
		"the end of the log behind it": {0, [][]byte{bare("FLUSH STATUS"),
			event(typeRotate, []byte("next"))}, true},
		"too short": {0, [][]byte{event(typeQuery, []byte{1, 2, 3})}, false},
	} {
		t.Run(name, func(t *testing.T) {
			log := bytes.Join(append([][]byte{magic[:], format(c.alg), begin}, c.events...), nil)
			wanted := gtid.MustParse(source + ":1")
			span, err := Times(context.Background(), indexOf(t, log), wanted, 1<<20)
			if err != nil || span.Maintenance.Contains(wanted) != c.is {
				t.Errorf("maintenance are %q: %v", span.Maintenance, err)
			}
		})
	}
}

func FuzzContent(f *testing.F) {
	f.Add(query("FLUSH STATUS", 0), byte(typeQuery))
	f.Fuzz(func(_ *testing.T, body []byte, kind byte) {
		c := content{}
		c.add(kind, body)
		c.isMaintenance()
	})
}
