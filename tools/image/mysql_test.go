package main

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnotherRecipeIsAnotherCacheEntry(t *testing.T) {
	other := mysqlRecipe
	if other.key() != mysqlRecipe.key() {
		t.Error("equal recipes have different keys")
	}
	other.Packages = append([]string{"mysql-shell"}, other.Packages...)
	if other.key() == mysqlRecipe.key() {
		t.Error("a recipe with one more package has the same key")
	}
}

func TestFailureTellsCommandOutputAndAdvice(t *testing.T) {
	_, err := command{Argv: []string{"sh", "-c", "echo went wrong >&2; exit 7"},
		Advice: "turn it off and on"}.run(context.Background(), io.Discard)
	if err == nil {
		t.Fatal("a failing command succeeded")
	}
	for _, want := range []string{"sh -c", "exit status 7", "went wrong", "turn it off and on"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not tell %q", err, want)
		}
	}
}

func TestMissingLibraryIsNamedTogetherWithWhoNeedsIt(t *testing.T) {
	root := t.TempDir()
	mustWrite(t, filepath.Join(root, "usr/bin/ls"), string(mustRead(t, "/bin/ls")))
	c, err := newClosure(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.add("usr/bin/ls"); err == nil || !strings.Contains(err.Error(), "usr/bin/ls needs the library") {
		t.Errorf("got %v", err)
	}
}

func TestNothingOutsideThePackagesIsTaken(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	if err := os.Symlink("/etc/passwd", filepath.Join(from, "leak")); err != nil {
		t.Fatal(err)
	}
	if err := take(from, to, "leak"); err == nil {
		t.Error("a link out of the tree was followed")
	}
}

// rootfs is the tree of the MySQL image, which takes root and Debian's archive to make and is
// therefore made beforehand.
func rootfs(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("CNMSQL_MYSQL_ROOTFS")
	if dir == "" || os.Geteuid() != 0 {
		t.Skip("needs root and a real mysqld: CNMSQL_MYSQL_ROOTFS=$(go run ./tools/image mysql-rootfs) go test " +
			"./tools/image")
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestImageHasNoShellNoInterpreterNoPackageManager(t *testing.T) {
	root := rootfs(t)
	unwanted := map[string]bool{"sh": true, "bash": true, "dash": true, "perl": true, "apt": true, "dpkg": true,
		"busybox": true, "man": true, "doc": true, "locale": true}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && path == filepath.Join(root, "tmp") {
			return fs.SkipDir
		}
		if err == nil && unwanted[e.Name()] {
			t.Errorf("%s is in the image", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestKeyringComponentIsInTheImage(t *testing.T) {
	// It loads only through a manifest, so here its presence must do.
	if _, err := os.Stat(filepath.Join(rootfs(t), "usr/lib/mysql/plugin/component_keyring_file.so")); err != nil {
		t.Error(err)
	}
}

func TestServerInitialisesAndLoadsEveryPluginThatTheOperatorUses(t *testing.T) {
	root := rootfs(t)
	scratch, err := os.MkdirTemp(filepath.Join(root, "tmp"), "image-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(scratch) })
	if err := os.Chown(scratch, mysqlID, mysqlID); err != nil {
		t.Fatal(err)
	}
	inside := strings.TrimPrefix(scratch, root)
	mustWrite(t, filepath.Join(scratch, "init.sql"), "INSTALL PLUGIN group_replication SONAME "+
		"'group_replication.so';\n"+
		"INSTALL PLUGIN clone SONAME 'mysql_clone.so';\n"+
		"INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so';\n"+
		"INSTALL PLUGIN rpl_semi_sync_replica SONAME 'semisync_replica.so';\n"+
		"SELECT CONCAT('loaded ', COUNT(*)) INTO OUTFILE '"+inside+"/loaded' FROM information_schema.plugins\n"+
		"  WHERE plugin_library IS NOT NULL AND plugin_status = 'ACTIVE';\n"+
		"SHUTDOWN;\n")
	mysqld(t, root, "--initialize-insecure", "--datadir="+inside+"/data")
	mysqld(t, root, "--datadir="+inside+"/data", "--socket="+inside+"/s", "--skip-networking", "--mysqlx=OFF",
		"--secure-file-priv="+inside, "--init-file="+inside+"/init.sql", "--server-id=1")
	if got := string(mustRead(t, filepath.Join(scratch, "loaded"))); got != "loaded 4\n" {
		t.Errorf("got %q, want four active plugins", got)
	}
}

func mysqld(t *testing.T, root string, args ...string) {
	t.Helper()
	c := command{Argv: append([]string{"/usr/sbin/mysqld", "--no-defaults"}, args...), Chroot: root, UID: mysqlID}
	if _, err := c.run(t.Context(), io.Discard); err != nil {
		t.Fatal(err)
	}
}
