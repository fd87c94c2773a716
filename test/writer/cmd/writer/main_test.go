package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cnmsql.co/test/writer"
)

func TestExitCodeTellsLostRowsFromNotKnowing(t *testing.T) {
	row := []writer.Row{{Connection: 1, Seq: 2}}
	for name, tc := range map[string]struct {
		verification *writer.Verification
		want         int
	}{
		"all there":     {&writer.Verification{Rows: 3}, exitGood},
		"lost":          {&writer.Verification{Missing: row}, exitRowsWrong},
		"invented":      {&writer.Verification{Extra: row}, exitRowsWrong},
		"only disorder": {&writer.Verification{OutOfOrder: row}, exitGood},
		"not checked":   {nil, exitCannotTell},
	} {
		if got := (result{Verification: tc.verification}).exitCode(); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

func someResult() result {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return result{
		Report: writer.Report{
			Snapshot: writer.Snapshot{
				Run: "r1", Started: start, At: start.Add(10 * time.Second), Acknowledged: 8000, Unknown: 4,
				LongestGap: writer.Gap{Start: start.Add(time.Second), End: start.Add(2500 * time.Millisecond)},
			},
			Latency: writer.Latency{P50: 500 * time.Microsecond},
			Errors:  []writer.ErrorSample{{What: "unknown", Text: "invalid connection", Count: 4}},
		},
		Verification: &writer.Verification{Rows: 7999, Missing: []writer.Row{{Connection: 1, Seq: 2, At: start}}},
	}
}

func TestJSONHasMillisecondsAndCounts(t *testing.T) {
	var out strings.Builder
	if err := someResult().print(&out, true); err != nil {
		t.Fatal(err)
	}
	var got summary
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatal(err)
	}
	if got.LongestGap.Ms != 1500 || got.Latency.P50 != 0.5 || got.Rows.Lost != 1 || !got.Verified ||
		len(got.Errors) != 1 {
		t.Errorf("got %s", out.String())
	}
}

func TestTableNamesWhatIsLost(t *testing.T) {
	var out strings.Builder
	if err := someResult().print(&out, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"8000 (800/s)", "1500.0 ms (03:04:06.000 to 03:04:07.500)", "LOST",
		"connection 1 row 2"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
}

func TestPasswordComesFromFileOrEnvironment(t *testing.T) {
	t.Setenv(passwordVariable, "from the environment")
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("from the file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"from the environment": {"--addr", "a:1"},
		"from the file":        {"--addr", "a:1", "--password-file", file},
	} {
		if o, err := parseOptions(args, io.Discard); err != nil || o.config.Password != want {
			t.Errorf("%v: %q, %v", args, o.config.Password, err)
		}
	}
	if _, err := parseOptions([]string{"--password", "x"}, io.Discard); err == nil {
		t.Error("a password was taken from the arguments")
	}
}

func TestTLSIsAsAskedFor(t *testing.T) {
	if o, err := parseOptions(nil, io.Discard); err != nil || o.config.TLS != nil {
		t.Errorf("TLS without being asked for: %v", err)
	}
	if o, err := parseOptions([]string{"--tls-skip-verify"}, io.Discard); err != nil ||
		!o.config.TLS.InsecureSkipVerify {
		t.Errorf("%+v %v", o.config.TLS, err)
	}
	empty := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := parseOptions([]string{"--tls-ca", empty}, io.Discard); err == nil {
		t.Error("an empty file of certificates was taken: nothing would be trusted, with a puzzling message")
	}
}

func TestNoPauseIsNotTheDefaultPause(t *testing.T) {
	if o, err := parseOptions([]string{"--interval", "0"}, io.Discard); err != nil || o.config.Interval >= 0 {
		t.Errorf("%s, %v", o.config.Interval, err)
	}
}
