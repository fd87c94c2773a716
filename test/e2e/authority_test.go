//go:build e2e

package e2e

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/pki"
	"cnmsql.co/internal/resources"
)

// authorityDeleted deletes the Secret of the certificate authority, under writes: first while the operator runs, which
// puts it back, then while none does, so that another authority has to be made. Whoever is restarted joins again at
// each step, and in the end the new one is alone.
func (w *world) authorityDeleted() {
	l, name := w.startWriting(), resources.Names(w.key.Name).CASecret()
	was := w.secret(name)
	w.kubectl("-n", w.key.Namespace, "delete", "secret", name)
	w.eventSays(string(core.ProblemAuthorityRestored))
	if string(w.secret(name).Data[resources.KeyKey]) != string(was.Data[resources.KeyKey]) {
		w.t.Error("what the operator has put back is another authority")
	}
	w.rejoins(w.replica())
	w.killOperatorAfter(func() { w.kubectl("-n", w.key.Namespace, "delete", "secret", name) })
	w.notices(core.ProblemAuthorityAwaits)
	l.stopAndLoseNothing()
	l = w.startWriting() // clients that verify are given both authorities
	w.rejoins(w.replica())
	w.restartsMembers("1")
	w.eventually("all are given certificates of the new authority", func() bool {
		by := w.secret(name).Data[resources.KeyCert]
		return !slices.ContainsFunc(w.cluster().Status.InstanceNames, func(member string) bool {
			has := resources.BundleOf(w.secret(resources.TLSSecret(member)).Data)
			return !pki.StaysGood(has, by, time.Now())
		})
	})
	w.restartsMembers("2")
	w.eventually("the lost authority is not trusted any more", func() bool {
		return strings.Count(string(w.secret(name).Data[resources.KeyCA]), "BEGIN") == 1
	})
	w.rejoins(w.replica())
	l.ackedAfter(time.Now(), 10*time.Second)
	l.stopAndLoseNothing()
	w.restartsMembers("3") // MembersToRejoin ends
}

func (w *world) secret(name string) *corev1.Secret {
	w.t.Helper()
	var s corev1.Secret
	if err := bed.Client.Get(w.ctx, types.NamespacedName{Namespace: w.key.Namespace, Name: name}, &s); err != nil {
		w.t.Fatal(err)
	}
	return &s
}

// notices waits until a notice of that name stands.
func (w *world) notices(reason core.Reason) {
	w.t.Helper()
	w.becomes(2*time.Minute, func(c *v1alpha1.Cluster) bool {
		for _, n := range c.Status.Notices {
			if n.Reason == string(reason) {
				return true
			}
		}
		return false
	})
}

// rejoins has the Pod of a member made anew, and waits until it is online again.
func (w *world) rejoins(member string) {
	w.t.Helper()
	old := w.pod(member)
	w.deletePod(member)
	w.replaced(old, time.Minute)
	w.healthy(3 * time.Minute)
	w.memberIs(member, "ONLINE")
}

// restartsMembers restarts all members as the documents say, and waits until each is another.
func (w *world) restartsMembers(round string) {
	w.t.Helper()
	before := w.podUIDs()
	w.kubectl("-n", w.key.Namespace, "patch", "cluster", w.key.Name, "--type=merge", "-p",
		`{"spec":{"env":[{"name":"CERTIFICATES","value":"`+round+`"}]}}`)
	w.becomes(time.Minute, func(c *v1alpha1.Cluster) bool {
		return c.Status.Phase == "Updating" || c.Status.Phase == "Switchover"
	})
	w.healthy(6 * time.Minute)
	for name, uid := range w.podUIDs() {
		if before[name] == uid {
			w.t.Errorf("round %s: %s was not restarted", round, name)
		}
	}
}
