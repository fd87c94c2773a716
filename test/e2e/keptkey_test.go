//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/layout"
)

// keyReplaced puts another key before the one of the encryption. What is stored from then on is encrypted
// to it. A restore that has the old one only is refused before it writes anything, and says to which
// key; given both, it goes on by itself, and has all.
func (b *backedUp) keyReplaced() {
	old, next := b.store.Key, b.newKey()
	b.backUp("to-the-old", "")
	before := b.completes("to-the-old")
	b.store.Key = next.String() + "\n" + old
	b.grants(b.store.Account)
	b.isArchivedTo(next.Recipient().String())
	b.backUp("to-the-next", "")
	after := b.completes("to-the-next")
	if after.EncryptedTo != next.Recipient().String() || before.EncryptedTo == after.EncryptedTo {
		b.t.Errorf("the backup before is encrypted to %s, and the one after to %s", before.EncryptedTo,
			after.EncryptedTo)
	}
	b.plugin([]string{"backup", "list", b.key.Name}, "encrypted to "+before.EncryptedTo+": ",
		"encrypted to "+after.EncryptedTo+": to-the-next")
	executed := b.archivesAll()
	wanted := b.checksums(b.open("rw"))

	in := b.named("rekeyed")
	b.vault(old)
	in.apply("\n  instances: 1\n  storage: {size: 1Gi}\n" +
		"  bootstrap: {recovery: {source: " + b.key.Name + "}}\n" +
		"  externalClusters: [{name: " + b.key.Name + ", objectStore: " +
		strings.Replace(b.store.Encrypted(), "identity: {name: store,", "identity: {name: vault,", 1) + "}]\n")
	c := in.becomes(2*time.Minute, func(c *v1alpha1.Cluster) bool {
		return strings.Contains(c.Status.PhaseReason, "KeyWrong")
	})
	b.says(c.Status.PhaseReason, next.Recipient().String())
	in.plugin([]string{"status", in.key.Name}, "KeyWrong", next.Recipient().String())
	if written := in.dataOf(in.key.Name + "-1"); len(written) > 0 {
		b.t.Errorf("it was refused, and there is %v", written)
	}
	b.vault(b.store.Key)
	in.healthy(4 * time.Minute)
	b.holds(in, executed, wanted)
}

// vault is a Secret with these keys of age, one a line.
func (b *backedUp) vault(keys string) {
	b.t.Helper()
	b.manifest(fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: vault}\nstringData: {age: %q}\n", keys))
}

// isArchivedTo waits until what is written is archived encrypted to a key, and looks whether all before
// was encrypted, too.
func (b *backedUp) isArchivedTo(recipient string) {
	b.t.Helper()
	b.sql("CREATE TABLE IF NOT EXISTS app.rekeyed (id INT AUTO_INCREMENT PRIMARY KEY)")
	begun, is := time.Now(), ""
	err := wait.PollUntilContextTimeout(b.ctx, time.Second, 4*time.Minute, true, func(context.Context) (bool, error) {
		b.sql("INSERT INTO app.rekeyed VALUES ()")
		part, _ := b.partOf(slices.Max(b.below("log/*/*.binlog.zst")))
		is = part.Recipient
		return is == recipient, nil
	})
	if err != nil {
		b.t.Fatalf("what is archived is encrypted to %q, and not to %s: %v", is, recipient, err)
	}
	b.t.Logf("archived to the other key after %s", time.Since(begun).Round(time.Second))
	for _, name := range b.below("log/*/*.binlog.zst") {
		if part, _ := b.partOf(name); part.Recipient == "" {
			b.t.Errorf("%s is not encrypted", name)
		}
	}
}

// dataOf is what lies in the data directory of an instance.
func (w *world) dataOf(instance string) []string {
	w.t.Helper()
	found, err := filepath.Glob(fmt.Sprintf("/proc/%d/root%s/*", w.pid(instance, "cnmsql"), layout.DataDir))
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}
