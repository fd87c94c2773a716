//go:build e2e

package e2e

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"cnmsql.co/api/v1alpha1"
)

// askedByPlugin does what a person on call does: has a backup taken, looks what there is, and has a
// Cluster made beside with the data of a moment, all by kubectl cnmsql.
func (b *backedUp) askedByPlugin() {
	b.plugin([]string{"backup", b.key.Name, "--name", "asked"}, "The backup asked of "+b.key.Name+" is complete")
	at := b.moment()
	b.archivesAll()
	b.plugin([]string{"backup", "list", b.key.Name}, "asked", v1alpha1.BackupCompleted, "Window")
	in := b.named("beside")
	b.plugin([]string{"restore", b.key.Name, "--name", in.key.Name, "--to",
		at.Format("2006-01-02T15:04:05.000000Z"), "--apply"}, in.key.Name)
	in.healthy(4 * time.Minute)
	if what := b.ask(in.open("rw"), "SELECT GROUP_CONCAT(what) FROM app.moments"); what != "before" {
		b.t.Errorf("of the rows before and after %s it has: %s", at, what)
	}
	b.remove(in)
	b.plugin([]string{"backup", "verify", b.key.Name}, v1alpha1.VerificationSucceeded, "tables are sound")
}

// scheduledAndRestoredByName: a schedule takes a backup at once, and a Cluster begins with that
// Backup alone, of which it knows the name.
func (b *backedUp) scheduledAndRestoredByName() {
	b.moment()
	b.manifest("apiVersion: mysql.cnmsql.co/v1alpha1\nkind: ScheduledBackup\nmetadata: {name: nightly}\nspec: {" +
		"cluster: {name: " + b.key.Name + "}, schedule: '0 30 2 * * *', immediate: true}\n")
	made := func() string {
		return b.kubectl("-n", b.key.Namespace, "get", "backup", "-l", v1alpha1.LabelScheduledBackup+"=nightly",
			"-o", "jsonpath={.items[*].metadata.name}")
	}
	if err := wait.PollUntilContextTimeout(b.ctx, 200*time.Millisecond, 30*time.Second, true,
		func(context.Context) (bool, error) { return made() != "", nil }); err != nil {
		b.t.Fatal("the schedule makes no Backup: ", err)
	}
	b.completes(made())
	b.sql("INSERT INTO app.moments (what) VALUES ('later')")
	in := b.named("by-name")
	in.apply("\n  instances: 1\n  storage: {size: 1Gi}\n" +
		"  bootstrap: {recovery: {backup: {name: " + made() + "}, recoveryTarget: {targetImmediate: true}}}\n")
	in.healthy(3 * time.Minute)
	if what := b.ask(in.open("rw"), "SELECT GROUP_CONCAT(what ORDER BY id) FROM app.moments"); what != "before,after" {
		b.t.Errorf("of the rows before and after the backup it has: %s", what)
	}
	b.remove(in)
	b.kubectl("-n", b.key.Namespace, "delete", "scheduledbackup", "nightly")
	b.kubectl("-n", b.key.Namespace, "wait", "--for=delete", "backup", "-l",
		v1alpha1.LabelScheduledBackup+"=nightly", "--timeout=1m")
	if left := strings.Fields(made()); len(left) > 0 {
		b.t.Errorf("its Backups are still there: %v", left)
	}
}
