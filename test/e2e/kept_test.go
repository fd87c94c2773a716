//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/layout"
	"cnmsql.co/test/testbed"
)

// TestBackupsKept shows what becomes of backups and an archive that are kept for long: the store's
// credentials and the key of the encryption are replaced, the clock has a backup tried, a Backup is let go
// whose store cannot be reached, and what has expired goes. What is promised to be restorable is restored
// each time.
func TestBackupsKept(t *testing.T) {
	onlyInAll(t)
	elsewhere := newWorld(t, "kept-store")
	store, err := bed.StartObjectStore(elsewhere.ctx, elsewhere.key.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	of := func(do func(*backedUp)) func(*world) { return func(w *world) { do(&backedUp{w, store}) } }
	newStory(t, "kept", of((*backedUp).begins)).play([]step{
		{"CredentialsReplaced", of((*backedUp).credentialsReplaced), inAll, three},
		{"KeyReplaced", of((*backedUp).keyReplaced), inAll, three},
		{"VerifiedByTheClock", of((*backedUp).verifiedByTheClock), inAll, three},
		{"ForgottenWithoutItsStore", of((*backedUp).forgottenWithoutItsStore), inAll, three},
		{"WhatExpiredGoes", of((*backedUp).whatExpiredGoes), inAll, three},
	})
}

// begins makes a Cluster, and nothing of an earlier one of its name is in the store.
func (b *backedUp) begins() {
	if err := bed.EmptyStore(b.ctx, b.store); err != nil {
		b.t.Fatal(err)
	}
	b.store.Key = b.newKey().String()
	b.admits(testbed.Account{ID: "first", Secret: "secret-of-the-first"})
	b.grants(testbed.Account{ID: "first", Secret: "secret-of-the-first"})
	b.apply(quorumSpec + "  backup: {objectStore: " + b.store.Encrypted() + ", continuousArchiving: {enabled: true, " +
		"targetRPOSeconds: 1}, retentionPolicy: 1d}\n")
	b.healthy(4 * time.Minute)
	b.sql("CREATE TABLE app.kept (id INT PRIMARY KEY)")
	b.sql("INSERT INTO app.kept VALUES (1), (2), (3)")
}

// admits has the store know that account and, but for its owner's, no other.
func (b *backedUp) admits(a testbed.Account) {
	b.t.Helper()
	if err := bed.Admit(b.ctx, b.store, a); err != nil {
		b.t.Fatal(err)
	}
}

// grants writes the account into the Secret that the Cluster names, beside the key.
func (b *backedUp) grants(a testbed.Account) {
	b.t.Helper()
	b.store.Account = a
	b.manifest(b.store.Credentials(b.key.Namespace))
}

func (b *backedUp) newKey() *age.X25519Identity {
	b.t.Helper()
	key, err := age.GenerateX25519Identity()
	if err != nil {
		b.t.Fatal(err)
	}
	return key
}

// archives waits until the condition ContinuousArchiving has that status, and returns it.
func (b *backedUp) archives(is metav1.ConditionStatus, within time.Duration) *metav1.Condition {
	b.t.Helper()
	c := b.becomes(within, func(c *v1alpha1.Cluster) bool {
		return meta.IsStatusConditionPresentAndEqual(c.Status.Conditions, v1alpha1.ConditionContinuousArchiving, is)
	})
	return meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionContinuousArchiving)
}

// credentialsReplaced has the store forget the account in the Secret. That is told by its name, and writes
// go on. Then another one is written into the Secret: the archive goes on by itself, in the same
// containers, also at the next primary, and nothing of what was written meanwhile is missing in it.
func (b *backedUp) credentialsReplaced() {
	b.backUp("by-the-first", "")
	s := b.completes("by-the-first")
	containers := b.containers()
	l := b.startWriting()
	second := testbed.Account{ID: "second", Secret: "secret-of-the-second"}
	b.admits(second)
	is := b.archives(metav1.ConditionFalse, 2*time.Minute)
	b.says(is.Reason+": "+is.Message, "StoreCredentialsWrong", "check the keys in the Secret")
	b.eventSays("StoreCredentialsWrong")
	b.plugin([]string{"status", b.key.Name}, "StoreCredentialsWrong")
	b.backUp("by-nobody", "")
	denied := b.awaits("by-nobody", 2*time.Minute, func(s *v1alpha1.BackupStatus) bool {
		return s.Phase == v1alpha1.BackupFailed
	})
	b.says(denied.Reason+": "+denied.Error, "StoreCredentialsWrong")
	l.ackedAfter(time.Now().Add(time.Second), 10*time.Second)

	b.grants(second)
	changed := time.Now()
	b.archives(metav1.ConditionTrue, 4*time.Minute)
	b.t.Logf("archived again %s after the Secret was changed", time.Since(changed).Round(time.Second))
	to := b.replica()
	b.switchTo(to)
	b.becomes(time.Minute, func(c *v1alpha1.Cluster) bool {
		return c.Status.CurrentPrimary == to && testbed.Healthy(c)
	})
	l.stopAndLoseNothing()
	b.backUp("by-the-second", "")
	b.completes("by-the-second")
	if now := b.containers(); !slices.Equal(now, containers) {
		b.t.Errorf("containers run that did not before: %v, and before %v", now, containers)
	}
	b.areGood(s)
}

// containers are those of the Cluster's instances.
func (b *backedUp) containers() (all []string) {
	b.t.Helper()
	var pods corev1.PodList
	if err := bed.Client.List(b.ctx, &pods, client.InNamespace(b.key.Namespace),
		client.MatchingLabels{v1alpha1.LabelCluster: b.key.Name}); err != nil {
		b.t.Fatal(err)
	}
	for _, p := range pods.Items {
		for _, c := range p.Status.ContainerStatuses {
			if c.Name == layout.Container {
				all = append(all, fmt.Sprintf("%s %s", p.Name, c.ContainerID))
			}
		}
	}
	slices.Sort(all)
	return all
}
