package gtid

import (
	"bufio"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// These tests hold the package against a real server's GTID functions. The
// server is temporary, listens on a socket only and dies with the test.

const malformedGTIDSet = 1772 // ER_MALFORMED_GTID_SET_SPECIFICATION

func TestAgainstServer(t *testing.T) {
	db := startServer(t)
	t.Run("syntax table", func(t *testing.T) { compareSyntaxTable(t, db) })
	t.Run("algebra of random pairs", func(t *testing.T) { compareAlgebra(t, db) })
	t.Run("random mutations", func(t *testing.T) { compareMutations(t, db) })
}

func compareSyntaxTable(t *testing.T, db *sql.DB) {
	for _, test := range accepted {
		if got, ok := serverText(t, db, test.text); !ok || got != test.want {
			t.Errorf("%s: the server makes %q of %q (accepted: %v)", test.name, got, test.text, ok)
		}
	}
	for _, test := range refused {
		if got, ok := serverText(t, db, test.text); ok {
			t.Errorf("%s: the server makes %q of %q", test.name, got, test.text)
		}
	}
}

// compareMutations takes random sets, spoils a few bytes and asks whether both
// sides still understand the same or refuse.
func compareMutations(t *testing.T, db *sql.DB) {
	const mutations = 4000
	r := newRandom(t)
	understood := 0
	for range mutations {
		text := r.mutate(r.setText())
		want, ok := serverText(t, db, text)
		s, err := Parse(text)
		if ok != (err == nil) || s.String() != want {
			t.Errorf("of %q the server makes %q (accepted: %v), Parse %q, %v", text, want, ok, s, err)
		}
		if ok {
			understood++
		}
	}
	t.Logf("%d of %d were well-formed", understood, mutations)
}

// serverText returns the server's own text of a set, or false if it refuses it.
func serverText(t *testing.T, db *sql.DB, text string) (string, bool) {
	var out string
	err := db.QueryRow("SELECT GTID_SUBTRACT(?, '')", text).Scan(&out)
	var refusal *mysql.MySQLError
	if errors.As(err, &refusal) && refusal.Number == malformedGTIDSet {
		return "", false
	}
	if err != nil {
		t.Fatalf("asking the server to normalise %q: %v", text, err)
	}
	return out, true
}

// pairColumns are the questions asked for each pair; answers gives ours.
const pairColumns = `GTID_SUBTRACT(?1, ''), GTID_SUBTRACT(CONCAT(?1, ',', ?2), ''),
	GTID_SUBTRACT(?1, ?2), GTID_SUBTRACT(?1, GTID_SUBTRACT(?1, ?2)), GTID_SUBSET(?2, ?1)`

func answers(s, other Set) []string {
	subset := "0"
	if s.Contains(other) {
		subset = "1"
	}
	return []string{s.String(), s.Union(other).String(),
		s.Subtract(other).String(), s.Intersect(other).String(), subset}
}

func compareAlgebra(t *testing.T, db *sql.DB) {
	r := newRandom(t)
	contained := 0
	for range 25 {
		var columns, want, pairs []string
		for range 200 { // pairs in one query
			x, y := r.setText(), r.setText()
			if r.IntN(4) == 0 { // else hardly any set would contain the other
				y = MustParse(x).Subtract(MustParse(y)).String()
			}
			columns = append(columns, strings.NewReplacer(
				"?1", "'"+x+"'", "?2", "'"+y+"'").Replace(pairColumns))
			ours := answers(MustParse(x), MustParse(y))
			contained += strings.Count(ours[len(ours)-1], "1")
			want = append(want, ours...)
			pairs = append(pairs, fmt.Sprintf("%q and %q", x, y))
		}
		got := queryRow(t, db, "SELECT "+strings.Join(columns, ", "), len(want))
		for i := range want {
			each := len(want) / len(pairs)
			if got[i] != want[i] {
				t.Errorf("question %d for %s: got %q, the server says %q", i%each, pairs[i/each], want[i], got[i])
			}
		}
	}
	t.Logf("%d of 5000 pairs were contained", contained)
}

func queryRow(t *testing.T, db *sql.DB, query string, columns int) []string {
	out, into := make([]string, columns), make([]any, columns)
	for i := range out {
		into[i] = &out[i]
	}
	if err := db.QueryRow(query).Scan(into...); err != nil {
		t.Fatal(err)
	}
	return out
}

// random draws texts of sets in all the ways servers understand.
type random struct{ *rand.Rand }

func newRandom(t *testing.T) random {
	seed, err := strconv.ParseUint(os.Getenv("RAPID_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	return random{rand.New(rand.NewPCG(seed, 0))}
}

func (r random) pick(choices ...string) string { return choices[r.IntN(len(choices))] }

// space is mostly nothing.
func (r random) space() string { return r.pick("", "", "", "", " ", "\n", "\t ", "\r\n") }

func (r random) setText() string {
	var text strings.Builder
	text.WriteString(r.space())
	for range r.IntN(5) {
		text.WriteString(r.sourceText() + r.space() + r.pick(",", ",\n", ", ,") + r.space())
	}
	if r.IntN(2) == 0 {
		text.WriteString(r.sourceText())
	}
	return text.String()
}

func (r random) sourceText() string {
	text := r.pick(a, b, universeSources[2], strings.ToUpper(a), strings.ReplaceAll(b, "-", ""), "{"+a+"}")
	for range r.IntN(8) {
		text += r.space() + ":" + r.space() + r.pick(r.intervalText(), r.intervalText(), r.intervalText(), r.tagText())
	}
	return text
}

func (r random) tagText() string {
	return r.pick("a", "A", "tag", "Tag_2", "_", "_9", "z", strings.Repeat("z", maxTag))
}

func (r random) intervalText() string {
	first := 1 + r.IntN(30)
	switch r.IntN(12) {
	case 0:
		return fmt.Sprintf("%d-9223372036854775806", first)
	case 1:
		return fmt.Sprintf("%d-%d", 9223372036854775807-first, 9223372036854775807-first/2-1)
	case 2, 3, 4:
		return fmt.Sprint(first)
	}
	return fmt.Sprintf("%d%s-%s%d", first, r.space(), r.space(), max(0, first+r.IntN(10)-2))
}

// mutate replaces, inserts and removes a few bytes. ASCII only: see
// TestParseRefusesTagsBeyondASCII.
func (r random) mutate(text string) string {
	const alphabet = "0019-:,{} \n\vaAfgzZ_+.x\x00\x1f\x7f'"
	for range 1 + r.IntN(2) {
		i := r.IntN(len(text) + 1)
		j := min(len(text), i+r.IntN(2))
		k := r.IntN(len(alphabet))
		text = text[:i] + r.pick("", alphabet[k:k+1], alphabet[k:k+1]) + text[j:]
	}
	return text
}

// startServer runs the mysqld that the environment names on an empty data
// directory, until the test ends.
func startServer(t *testing.T) *sql.DB {
	t.Helper()
	binary, root := os.Getenv("CNMSQL_MYSQLD"), os.Getenv("CNMSQL_MYSQL_ROOTFS")
	switch {
	case root != "":
		binary = "/usr/sbin/mysqld"
	case binary == "":
		t.Skip("needs MySQL 9.7: set CNMSQL_MYSQLD to the path of a mysqld, or CNMSQL_MYSQL_ROOTFS to a root file " +
			"system that has one (needs root)")
	}
	dir, err := os.MkdirTemp(filepath.Join("/", root, "tmp"), "cnmsql-gtid")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	inside := strings.TrimPrefix(dir, filepath.Clean(root))

	mysqld := func(args ...string) *exec.Cmd {
		args = append([]string{"--no-defaults", "--user=root", "--secure-file-priv=NULL", "--datadir=" +
			inside + "/data"}, args...)
		cmd := exec.Command(binary, args...)
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Pdeathsig: syscall.SIGKILL}
		return cmd
	}
	if out, err := mysqld("--initialize-insecure").CombinedOutput(); err != nil {
		t.Fatalf("initialising a data directory: %v\n%s", err, out)
	}
	serve(t, mysqld("--socket="+inside+"/s", "--skip-networking", "--mysqlx=OFF",
		"--disable-log-bin", "--performance-schema=OFF"))
	db, err := sql.Open("mysql", "root@unix("+dir+"/s)/?interpolateParams=true")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// serve starts a server and waits until it says that it is ready.
func serve(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	drained := make(chan struct{})
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-drained
		cmd.Wait()
	})
	var log strings.Builder
	lines := bufio.NewScanner(stderr)
	ready := false
	for !ready && lines.Scan() {
		log.WriteString(lines.Text() + "\n")
		ready = strings.Contains(lines.Text(), "ready for connections")
	}
	go func() {
		defer close(drained)
		for lines.Scan() { // a server whose pipe is full would hang
		}
	}()
	if !ready {
		t.Fatalf("the server ended before it was ready:\n%s", log.String())
	}
}
