package mysql

import (
	"os"
	"path/filepath"
	"testing"
)

// The files of mysqld 9.7.4: of a member that was killed after its data had been dropped, of
// one whose donor refused, and of one that is complete.
const (
	interrupted = "1 1\n1795580558163333 0\n127.0.7.2:23316\n1317\nQuery execution was interrupted\n\n0\n\n"
	completed   = "2 1\n1795581286271745 1795581293675173\n127.0.7.2:23316\n0\n\n" +
		"./binlog.000003\n198\n7f1a6d0e-0000-5000-8000-000000000001:1-2\n"
	dropped   = "1\n3 1 1795580558201242 0 0 0 0\n0 0 0 0 0 0 0\n"
	untouched = "1\n0 0 0 0 0 0 0\n0 0 0 0 0 0 0\n"
)

func TestWhetherACopyBrokeOff(t *testing.T) {
	for name, c := range map[string]struct {
		status, progress string
		want, unknown    bool
	}{
		"there was none":                  {},
		"the data were being dropped":     {status: interrupted, progress: dropped, want: true},
		"the donor refused":               {status: interrupted, progress: untouched},
		"it is complete":                  {status: completed, progress: dropped},
		"nothing is said of its progress": {status: interrupted},
		"words where the number was":      {status: "1 1\n0 0\nhost\nno error\n", progress: dropped, unknown: true},
		"a file that was cut":             {status: "1 1\n1795", progress: dropped, unknown: true},
		"progress that was cut":           {status: interrupted, progress: "1", unknown: true},
	} {
		data := t.TempDir()
		if err := os.Mkdir(filepath.Join(data, "#clone"), 0o700); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{"#view_status": c.status, "#view_progress": c.progress} {
			if text == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(data, "#clone", file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := CopyBrokeOff(data)
		if got != c.want || (err != nil) != c.unknown {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
}
