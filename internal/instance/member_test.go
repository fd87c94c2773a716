package instance

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
)

// groupAddress: members on one machine have one address and differ in their ports.
func (w *world) groupAddress(instance string) string {
	n, _ := strconv.Atoi(instance[strings.LastIndexByte(instance, '-')+1:])
	return fmt.Sprintf("127.0.0.1:%d", w.port+4+n)
}

// newGroup makes a world whose instances are members of a group, of which db-1 is to
// make it.
func newGroup(t *testing.T, instances int32) *world {
	return newWorld(t, func(c *v1alpha1.Cluster) {
		c.Spec.Instances = instances
		c.Spec.Replication.Mode = v1alpha1.ReplicationGroup
		c.Status.TargetPrimary = "db-1"
		c.Status.PrimaryEpoch = 1
		c.Status.GroupReplication = &v1alpha1.GroupReplicationStatus{GroupName: "7f1a6d0e-0000-5000-8000-000000000001"}
		for i := range instances {
			c.Status.InstanceNames = append(c.Status.InstanceNames, fmt.Sprintf("db-%d", i+1))
		}
	})
}

// madeBy does what the operator does when it sees the group.
func (w *world) madeBy(n *node) {
	w.t.Helper()
	w.awaitRole(n, core.MemberPrimary)
	w.kube.edit(func(c *v1alpha1.Cluster) {
		now := metav1.NowMicro()
		c.Status.GroupReplication.Bootstrapped, c.Status.EstablishedAt = true, &now
	})
	w.primaryIs(n)
}

func (w *world) primaryIs(n *node) {
	w.kube.edit(func(c *v1alpha1.Cluster) {
		c.Status.CurrentPrimary, c.Status.TargetPrimary = n.opt.Instance, n.opt.Instance
		c.Status.PrimaryEpoch++
	})
}

func (w *world) awaitRole(n *node, role core.MemberRole) core.Report {
	w.t.Helper()
	return w.await(n, "online as "+string(role), func(r core.Report) bool {
		settled := get(n.m, func(s *state) core.MemberRole { return s.member.settled })
		return r.Server != nil && r.Server.Group != nil && r.Server.Group.State == core.MemberOnline && r.Server.Group.Role == role && settled == role
	})
}

func (w *world) joinGroup(n, donor *node) {
	w.t.Helper()
	w.await(n, "awaiting a clone", func(r core.Report) bool { return r.State == core.AwaitingClone && r.Server != nil })
	w.order(n, control.VerbCloneFrom, control.Order{Epoch: w.epoch(), Donor: donor.opt.Listen})
	w.awaitRole(n, core.MemberSecondary)
}

// threeMembers makes a group of three.
func threeMembers(t *testing.T) (*world, []*node) {
	w := newGroup(t, 3)
	n := []*node{w.start(1), w.start(2), w.start(3)}
	w.madeBy(n[0])
	w.exec(w.app(n[0]), "CREATE TABLE t (id INT PRIMARY KEY)")
	w.joinGroup(n[1], n[0])
	w.joinGroup(n[2], n[1])
	return w, n
}

func TestAGroupIsMadeJoinedAndHandedOver(t *testing.T) {
	w, n := threeMembers(t)
	w.exec(w.app(n[0]), "INSERT INTO t VALUES (1)")
	w.awaitRows(w.app(n[2]), 1)
	uuid := n[1].report().Server.UUID
	began := time.Now()
	w.order(n[0], control.VerbSetGroupPrimary, control.Order{Epoch: w.epoch(), Member: uuid})
	w.awaitRole(n[1], core.MemberPrimary)
	t.Logf("handed over after %s", time.Since(began))
	w.primaryIs(n[1])
	w.exec(w.app(n[1]), "INSERT INTO t VALUES (2)")
	w.awaitRows(w.app(n[0]), 2)
}
