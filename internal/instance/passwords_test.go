package instance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/mysql"
)

// changeSecret changes a password, as the kubelets bring it.
func (w *world) changeSecret(account, password string) {
	w.write(filepath.Join(w.dir, "secrets", account, "password"), password)
}

// awaitFollowed waits until the primary has looked at the Secrets as they are.
func (w *world) awaitFollowed(n *node) {
	w.t.Helper()
	until(w.t, "it follows the Secrets", func() bool {
		_, sum, err := n.opt.Dirs.secrets()
		return err == nil && n.remembers().Accounts == sum
	})
}

// lookedAfterAccounts has the keeper of the accounts look at servers and Secrets, and returns when it has.
// A third ring finds room only when the second was heard, and that is after the look that the first has caused.
func (w *world) lookedAfterAccounts(n *node) {
	w.t.Helper()
	for range 3 {
		select {
		case n.m.keeper.wake <- struct{}{}:
		case <-time.After(patience):
			w.t.Fatal("nobody looks after the accounts")
		}
	}
}

// newFollowed is a new world with a primary whose accounts have the passwords of their Secrets.
func newFollowed(t *testing.T) (w *world, one *node) {
	t.Helper()
	w = newWorld(t, nil)
	one = w.start(1)
	w.bootstrap(one)
	w.awaitFollowed(one)
	return w, one
}

// awaitLogin waits until an application is let in with one password, and not with another.
func (w *world) awaitLogin(n *node, password, former string) {
	w.t.Helper()
	until(w.t, "app is let in with "+password, func() bool { return w.login(n, "app", password, "preferred") == nil })
	w.checkLogin(n, password, former)
}

func (w *world) checkLogin(n *node, password, former string) {
	w.t.Helper()
	if err := w.login(n, "app", password, "preferred"); err != nil {
		w.t.Errorf("with %s: %v", password, err)
	}
	if err := w.login(n, "app", former, "preferred"); err == nil {
		w.t.Errorf("with %s app is let in, too", former)
	}
}

// Passwords are changed in their Secrets while the cluster has no primary. Whoever becomes it has
// never looked at the Secrets.
func TestAPasswordChangedDuringAFailoverIsFollowed(t *testing.T) {
	inAll(t)
	w, one, two := newPair(t, nil)
	w.crashManager(one)
	w.changeSecret("app", "another-app-password")
	w.changeSecret("root", "another-root-password")
	w.awaitPrimary(two, w.grant("db-2", core.ProofPodTerminated, "db-1", "", 0))
	w.awaitLogin(two, "another-app-password", "app-password")
	w.awaitFollowed(two)
	until(t, "root is let in with its new password", func() bool { return two.m.root.Ping(t.Context()) == nil })
}

// The former primary's kubelet was faster: the new one has the Secret of before still.
func TestAnOlderSecretDoesNotUndoANewerPassword(t *testing.T) {
	inAll(t)
	w, one, two := newPair(t, nil)
	w.awaitFollowed(one)
	w.changeSecret("app", "second")
	w.awaitFollowed(one)
	w.exec(w.rootOf(one), "CREATE DATABASE after_it")
	until(t, "db-2 has applied it", func() bool { return w.login(two, "app", "second", "preferred") == nil })
	w.crashManager(one)
	w.changeSecret("app", "app-password")
	w.awaitPrimary(two, w.grant("db-2", core.ProofPodTerminated, "db-1", "", 0))
	for began := time.Now(); time.Since(began) < 3*accountsInterval && !t.Failed(); <-time.After(time.Second) {
		w.checkLogin(two, "second", "app-password")
	}
	before := w.executed(two)
	w.changeSecret("app", "second")
	w.awaitFollowed(two)
	w.checkLogin(two, "second", "app-password")
	if now := w.executed(two); !now.Equal(before) {
		t.Errorf("it wrote transactions for what had not changed: %s, before %s", now, before)
	}
	w.changeSecret("app", "third")
	w.awaitLogin(two, "third", "second")
	w.awaitFollowed(two)
	w.changeSecret("app", "app-password") // this Pod had the newest: the Secret was set back
	w.awaitLogin(two, "app-password", "third")
}

// A password that was changed by hand is the administrator's, whoever becomes the primary; and a
// promotion writes nothing for what has not changed.
func TestAPromotionLeavesAloneWhatHasNotChanged(t *testing.T) {
	inAll(t)
	w, one, two := newPair(t, nil)
	w.exec(w.rootOf(one), "ALTER USER app@'%' IDENTIFIED BY 'by-hand'")
	until(t, "db-2 has applied it", func() bool { return w.login(two, "app", "by-hand", "preferred") == nil })
	w.crashManager(one)
	before := w.executed(two)
	w.awaitPrimary(two, w.grant("db-2", core.ProofPodTerminated, "db-1", "", 0))
	w.awaitFollowed(two)
	w.checkLogin(two, "by-hand", "app-password")
	if now := w.executed(two); !now.Equal(before) {
		t.Errorf("the promotion wrote %s, before %s", now, before)
	}
}

// An account that somebody made has the password that it was given, also after a promotion, until its Secret changes.
func TestAnAccountThatWasMadeByHandKeepsItsPassword(t *testing.T) {
	inAll(t)
	w, one := newFollowed(t)
	w.exec(w.rootOf(one), "DROP USER app@'%'")
	w.exec(w.rootOf(one), "CREATE USER app@'%' IDENTIFIED BY 'by-hand'")
	must(t, one.m.record.change(func(r *volumeRecord) { r.Accounts = "of another Secret" }))
	w.crashManager(one)
	again := w.start(1)
	w.awaitPrimary(again, 1)
	w.awaitFollowed(again)
	w.checkLogin(again, "by-hand", "app-password")
	w.changeSecret("app", "another-app-password")
	w.awaitLogin(again, "another-app-password", "by-hand")
}

// Data of an earlier release tell nothing of Secrets, but the volume of its primary does.
func TestWhatAnEarlierReleaseFollowedIsNoted(t *testing.T) {
	inAll(t)
	w, one := newFollowed(t)
	w.exec(w.rootOf(one), `ALTER USER app@'%' IDENTIFIED BY 'by-hand' ATTRIBUTE '{"cnmsql": null, "mine": 1}'`)
	w.crashManager(one)
	again := w.start(1)
	w.awaitPrimary(again, 1)
	noted := func() bool {
		var text string
		err := w.rootOf(again).QueryRow("SELECT ATTRIBUTE->>'$.mine' FROM information_schema.USER_ATTRIBUTES " +
			"WHERE USER = 'app' AND JSON_LENGTH(ATTRIBUTE->'$.cnmsql.passwords') = 1").Scan(&text)
		return err == nil && text == "1"
	}
	until(t, "it notes what was followed", noted)
	w.checkLogin(again, "by-hand", "app-password")
}

// An account's password is one line of text, of no more bytes than a server lets anybody in with. That of
// the replication account has at most 32: no channel takes a longer one.
func TestAnAccountOfNoUseIsNone(t *testing.T) {
	dirs := Dirs{Replication: t.TempDir(), Control: t.TempDir()}
	read := func(dir, user, password string) error {
		must(t, os.WriteFile(filepath.Join(dir, "username"), []byte(user), 0o600))
		must(t, os.WriteFile(filepath.Join(dir, "password"), []byte(password), 0o600))
		if dir == dirs.Replication {
			_, err := dirs.replicationAccount()
			return err
		}
		_, err := readAccount(dir)
		return err
	}
	long := strings.Repeat("x", 257)
	for _, c := range []struct{ dir, user, password, told string }{
		{dirs.Replication, "joe", long[:32] + "\n", ""},
		{dirs.Replication, "joe", long[:33], "has 33 bytes, and nobody can replicate with more than 32"},
		{dirs.Control, "joe", long[:256] + "\r\n", ""},
		{dirs.Control, "joe", long, "has 257 bytes, and a server lets nobody in with more than 256"},
		{dirs.Replication, "joe", "hunter2\nhunter3", "has several lines"},
		{dirs.Control, "joe", "hunter2\x00", "has several lines"},
		{dirs.Control, "joe", "hunter2\xff", "no UTF-8"},
		{dirs.Control, "jo\te", "hunter2", "has several lines"},
	} {
		err := read(c.dir, c.user, c.password)
		if (err == nil) != (c.told == "") || err != nil && (!strings.Contains(err.Error(), c.told) ||
			!strings.Contains(err.Error(), c.dir) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%q, %q: it says %v", c.user, c.password, err)
		}
	}
}

// A server repeats a password that it does not take whole. What is told of it is read by many.
func TestAPasswordThatAChannelRefusesIsNotQuoted(t *testing.T) {
	inAll(t)
	w := newWorld(t, nil)
	one := w.start(1)
	w.bootstrap(one)
	d := one.opt.Dirs
	err := one.m.roles.BecomeReplicaOf(t.Context(), mysql.Source{Host: host("db-2"), Port: 3306,
		Account: mysql.Account{User: "joe", Password: "hunter2\nhunter3"},
		CAFile:  d.ca(), CertFile: d.cert(), KeyFile: d.key(), Refuses: func(gtid.Set) error { return nil }})
	if err == nil || strings.Contains(err.Error(), "hunter") || !strings.Contains(err.Error(), "error 1525") {
		t.Errorf("it says %v", err)
	}
}

// A primary without a majority of its group leaves accounts alone: a change would wait with all of them locked.
func TestASecretIsNotFollowedInAGroupWithoutItsMajority(t *testing.T) {
	inAll(t)
	w, n := threeMembers(t)
	w.awaitFollowed(n[0])
	w.crashManager(n[1])
	w.crashManager(n[2])
	w.await(n[0], "without a quorum", func(r core.Report) bool {
		return r.Server != nil && r.Server.HasView() && r.Server.Group.IsSurvivor()
	})
	w.changeSecret("app", "another-app-password")
	w.lookedAfterAccounts(n[0])
	w.checkLogin(n[0], "app-password", "another-app-password")
	w.await(n[0], "asked", func(r core.Report) bool { return r.Server != nil })
}

// Data of 8.0 may hold an account with mysql_native_password, which 9.x does not load. Nobody can log in with it,
// and its Secret is followed all the same.
func TestAnAccountWhosePluginIsNotLoadedIsGivenItsPassword(t *testing.T) {
	inAll(t)
	w, one := newFollowed(t)
	w.exec(w.rootOf(one), "UPDATE mysql.user SET plugin = 'no_such_plugin', "+
		"authentication_string = '*0123456789012345678901234567890123456789' WHERE user = 'app'")
	w.exec(w.rootOf(one), "FLUSH PRIVILEGES")
	if w.login(one, "app", "app-password", "preferred") == nil {
		t.Fatal("this test cannot see an account that lets nobody in")
	}
	w.changeSecret("app", "another-app-password")
	w.awaitLogin(one, "another-app-password", "app-password")
	w.awaitFollowed(one)
}

// Nobody is let in with a password of more than 256 bytes, nor follows with one of more than 32. The accounts
// keep those that they have, the others are followed.
func TestAPasswordThatIsTooLongIsNotFollowed(t *testing.T) {
	inAll(t)
	w, one, two := newPair(t, nil)
	w.awaitFollowed(one)
	w.changeSecret("replication", strings.Repeat("x", 33))
	w.changeSecret("control", strings.Repeat("x", 257))
	one.m.keeper.wake <- struct{}{} // it looks whether the internal accounts are let in
	w.changeSecret("app", "another-app-password")
	w.changeSecret("root", "another-root-password")
	w.awaitLogin(one, "another-app-password", "app-password")
	until(t, "root is let in with its new password", func() bool { return one.m.root.Ping(t.Context()) == nil })
	for began := time.Now(); time.Since(began) < 2*accountsInterval && !t.Failed(); <-time.After(time.Second) {
		if r := one.report(); r.WritableEpoch == 0 || r.Server == nil {
			t.Errorf("the manager is kept out: %s %s", r.Reason, r.Message)
		}
	}
	w.awaitFollowing(two)
	w.changeSecret("replication", strings.Repeat("x", 32))
	w.changeSecret("control", strings.Repeat("x", 256))
	w.awaitFollowed(one)
	w.await(one, "asked", func(r core.Report) bool { return r.Server != nil })
	w.await(two, "asked", func(r core.Report) bool { return r.Server != nil })
	_ = two.proc().handle.Kill() // it logs in anew
	w.await(two, "following again", func(r core.Report) bool {
		return r.Restarts > 0 && r.Server != nil && r.Server.Replication != nil && r.Server.Replication.IORunning
	})
}

// TestAPasswordThatAHumanRetainsGoesOnBesideTheSecrets holds for who changes a password without a moment in which
// anybody is refused: the Secret's is set as the first password, and the second stays until it is discarded.
func TestAPasswordThatAHumanRetainsGoesOnBesideTheSecrets(t *testing.T) {
	inAll(t)
	w, one := newFollowed(t)
	root := one.m.root.DB()
	w.exec(root, "ALTER USER app@'%' IDENTIFIED BY 'next-app-password' RETAIN CURRENT PASSWORD")
	w.changeSecret("app", "next-app-password")
	w.awaitFollowed(one)
	for _, password := range []string{"next-app-password", "app-password"} {
		if err := w.login(one, "app", password, "preferred"); err != nil {
			t.Errorf("with %s: %v", password, err)
		}
	}
	w.exec(root, "ALTER USER app@'%' DISCARD OLD PASSWORD")
	w.checkLogin(one, "next-app-password", "app-password")
}
