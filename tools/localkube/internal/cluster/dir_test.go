package cluster

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

var longAgo = time.Unix(1e9, 0)

func TestForeignDirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "precious"), nil, 0o644)
	if checkDir(dir, "a") == nil {
		t.Error("down would remove somebody's files")
	}
}

func TestDirectoryOfAnotherClusterIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := markDir(dir, "a"); err != nil {
		t.Fatal(err)
	}
	if err := checkDir(dir, "a"); err != nil {
		t.Error(err)
	}
	if checkDir(dir, "b") == nil {
		t.Error("b takes the directory of a")
	}
}

func TestDirectoryIsResolvedThroughLinks(t *testing.T) {
	base, _ := filepath.EvalSymlinks(t.TempDir())
	os.Mkdir(filepath.Join(base, "real"), 0o755)
	os.Symlink("real", filepath.Join(base, "link"))
	for given, want := range map[string]string{"link": "real", "link/new": "real/new", "real/new": "real/new"} {
		if got, err := resolve(filepath.Join(base, given), ""); err != nil || got != filepath.Join(base, want) {
			t.Errorf("%s: got %s, %v", given, got, err)
		}
	}
}

func TestUnchangedConfigurationIsNotWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sub", "config")
	files := map[string]string{file: "text"}
	if err := writeFiles(files); err != nil {
		t.Fatal(err)
	}
	os.Chtimes(file, longAgo, longAgo)
	if err := writeFiles(files); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(file); !info.ModTime().Equal(longAgo) {
		t.Error("kube-proxy would end itself")
	}
}
