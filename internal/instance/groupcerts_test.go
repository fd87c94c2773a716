package instance

import (
	"testing"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/pki"
)

// give has all of them show leaves of one authority and trust these, and waits until each mysqld does.
func (w *world) give(signs *authority, trust string, nodes ...*node) {
	w.t.Helper()
	w.ca = signs
	before := map[*node]string{}
	for _, n := range nodes {
		before[n] = w.servedCertificate(n, n.opt.MySQLPort)
		cert, key := signs.issue(w.t, pki.OrgInstance, n.opt.Listen)
		w.write(n.opt.Dirs.ca(), trust)
		w.write(n.opt.Dirs.key(), key)
		w.write(n.opt.Dirs.cert(), cert)
	}
	for _, n := range nodes {
		until(w.t, "mysqld shows its new certificate", func() bool {
			now := w.servedCertificate(n, n.opt.MySQLPort)
			return now != "" && now != before[n]
		})
	}
}

// rejoinAll has all members leave the group and join it again, one at a time, the primary, which is the
// first, last. It returns them with the new primary first.
func (w *world) rejoinAll(n []*node) []*node {
	w.t.Helper()
	primary, next := n[0], n[1]
	for _, x := range n[1:] {
		w.rejoin(x)
	}
	w.order(primary, control.SetGroupPrimary{Epoch: w.epoch(), Member: next.report().Server.UUID, Within: 1})
	w.awaitRole(next, core.MemberPrimary)
	w.primaryIs(next)
	w.rejoin(primary)
	return []*node{next, primary, n[2]}
}

// rejoin has a secondary leave the group and join it again.
func (w *world) rejoin(n *node) {
	w.t.Helper()
	w.fenceWhile(n, func() {})
	w.awaitRole(n, core.MemberSecondary)
}

// Members show each other the certificates with which they joined, whatever was renewed since. While
// those are good, one that shows a renewed one of the same authority is admitted.
func TestAMemberWithARenewedCertificateJoinsThoseThatShowTheirFormer(t *testing.T) {
	inAll(t)
	w, n := threeMembers(t)
	w.give(w.ca, w.ca.pem, n...)
	w.rejoin(n[2])
}

// The way of docs/security.md: whoever is away for a moment is admitted again at each step, and at the
// end by those that did not join again since the former authority was taken out.
func TestAGroupGoesToAnotherAuthorityByOneThatAllTrust(t *testing.T) {
	inAll(t)
	w, n := threeMembers(t)
	old, next := w.ca, newAuthority(t)
	both := old.pem + next.pem
	for _, signs := range []*authority{old, next} {
		w.give(signs, both, n...)
		n = w.rejoinAll(n)
	}
	w.give(next, next.pem, n...)
	w.rejoin(n[2]) // it trusts the next alone, and is trusted by those that trust both
	w.exec(w.app(n[0]), "INSERT INTO t VALUES (1)")
	w.awaitRows(w.app(n[2]), 1)
}

// The other way: with everybody down at once, nobody shows a certificate of the former authority.
func TestAGroupWhoseAuthorityWasReplacedIsRebootedWhenAllAreDown(t *testing.T) {
	inAll(t)
	w, n := threeMembers(t)
	w.exec(w.app(n[0]), "INSERT INTO t VALUES (1)")
	w.awaitRows(w.app(n[2]), 1)
	next := newAuthority(t)
	w.give(next, next.pem, n...)
	for _, x := range n {
		must(t, x.proc().handle.Kill())
	}
	w.await(n[0], "back and in no group", func(r core.Report) bool {
		return r.Server != nil && r.Server.Group.State == core.MemberOffline && r.Reason == core.MemberAwaitingGroup
	})
	w.kube.edit(func(c *v1alpha1.Cluster) { c.Status.PrimaryEpoch++ })
	w.order(n[0], control.RebootGroup{Epoch: w.epoch()})
	w.elected(n[0])
	w.awaitRole(n[1], core.MemberSecondary)
	w.awaitRole(n[2], core.MemberSecondary)
	w.awaitRows(w.app(n[2]), 1)
}
