package mysql

import (
	"strings"
	"testing"

	"cnmsql.co/internal/gtid"
	"cnmsql.co/test/mysqld"
)

const uuidA, uuidB = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa", "23232323-2323-2323-2323-232323232323"

// owned are transactions that are begun and not committed; each run of digits could be a part
// of what stands before it.
var owned = []string{
	uuidA + ":5", uuidA + ":6",
	uuidB + ":7", uuidA + ":tag:9",
	uuidA + ":tag:10", uuidA + ":b:1",
	uuidB + ":tag:11",
}

func TestWhatIsOwned(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "",
		uuidA + ":6#9:5#8":                   strings.Join(owned[:2], ","),
		uuidB + ":7#10" + uuidA + ":6#9:5#8": strings.Join(owned[:3], ","),
		// As 9.7.4 printed all of owned.
		uuidB + ":7#10" + uuidB + ":tag:11#14" +
			uuidA + ":6#9:5#8" + uuidA + ":b:1#13" +
			uuidA + ":tag:10#12:9#11": strings.Join(owned, ","),
	} {
		if got, err := parseOwned(text); err != nil || !got.Equal(gtid.MustParse(want)) {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
	if _, err := parseOwned("nonsense"); err == nil {
		t.Error("nonsense is understood")
	}
}

func TestWhatARealServerOwns(t *testing.T) {
	s := mysqld.ForTest(t)
	s.Initialize()
	s.Start(1)
	var want gtid.Set
	for _, next := range owned {
		if strings.Contains(next, ":tag:") || strings.Contains(next, ":b:") {
			if s.Text("SELECT VERSION() < '8.3'") == "1" {
				continue // knows no tags
			}
		}
		conn, err := s.DB.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.ExecContext(t.Context(), "SET gtid_next='"+next+"'"); err != nil {
			t.Fatal(err)
		}
		want = want.Union(gtid.MustParse(next))
		text := s.Text("SELECT @@global.gtid_owned")
		if got, err := parseOwned(text); err != nil || !got.Equal(want) {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
}
