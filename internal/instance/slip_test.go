package instance

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Nobody is let in with a password of more than 256 bytes, and the accounts keep those that they have. A switchover
// goes on with them: the primary is not killed, its successor takes writes, and a replica follows that with what its
// channel knows. The former primary has no channel, and follows when the Secret is mended.
func TestASecretThatCannotBeUsedHoldsUpNoChangeOfRole(t *testing.T) {
	inAll(t)
	w, n := three(t)
	w.awaitFollowed(n[0])
	for _, which := range []string{"replication", "control"} {
		w.changeSecret(which, strings.Repeat("x", 257))
	}
	mysqld := n[0].proc()
	w.switchover(n[0], n[1], 1)
	if !mysqld.running() || n[0].proc() != mysqld {
		t.Error("the former primary was killed")
	}
	w.awaitFollowing(n[2])
	w.exec(w.app(n[1]), "CREATE TABLE u (id INT PRIMARY KEY)") // which db-3 acknowledges
	for _, which := range []string{"replication", "control"} {
		w.changeSecret(which, which+"-password")
	}
	w.awaitFollowing(n[0])
}

// A Secret that has lost its username leaves the name that it had.
func TestNamesOfAccountsAreRemembered(t *testing.T) {
	dirs := Dirs{Control: t.TempDir(), Replication: t.TempDir()}
	name := func(dir, user string) { must(t, os.WriteFile(filepath.Join(dir, "username"), []byte(user), 0o600)) }
	name(dirs.Control, "control")
	s := newSessions(newManager(Options{Dirs: dirs}))
	if _, err := s.internalUsers(); err == nil || !strings.Contains(err.Error(), dirs.Replication) {
		t.Errorf("without the name of one it says %v", err)
	}
	name(dirs.Replication, "replication")
	for _, now := range []func(){
		func() {}, func() { name(dirs.Control, "") }, func() { must(t, os.Remove(dirs.Replication+"/username")) },
	} {
		now()
		users, err := s.internalUsers()
		if err != nil || !slices.Equal(users, []string{"control", "replication"}) {
			t.Errorf("they are %q, %v", users, err)
		}
	}
}
