//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/test/testbed"
)

// A Cluster on the oldest series of MySQL that is promised.
const (
	quorum80 = quorum + "  imageName: %IMAGE%\n"
	group80  = `
  instances: 3
  storage: {size: 1Gi}
  replication: {mode: groupReplication}
  imageName: %IMAGE%
`
)

func TestMySQL80(t *testing.T) {
	onlyInAll(t)
	w := newWorld(t, "mysql80")
	w.t.Run("ThreeInstancesBecomeReady", func(t *testing.T) { w.in(t).provision80(quorum80) })
	if t.Failed() {
		return
	}
	w.playInTurn([]step{
		{"WritesReachReplicas", (*world).writesReachReplicas, inAll},
		{"SwitchoverUnderWrites", (*world).switchoverUnderWrites, inAll},
		{"MysqldOfPrimaryKilled", (*world).mysqldOfPrimaryKilled, inAll},
		{"PrimaryPodForceDeleted", (*world).primaryPodForceDeleted, inAll},
		{"PrimaryPodDeleted", (*world).primaryPodDeleted, inAll},
		{"ReplicaVolumeDeleted", (*world).replicaVolumeDeleted, inAll},
		{"TooLongAStepIsRefused", (*world).upgradeTooFar, inAll},
		{"DeletedClusterLeavesNothing", (*world).deletedClusterLeavesNothing, inAll},
	})
}

func TestMySQL80Group(t *testing.T) {
	onlyInAll(t)
	w := newWorld(t, "group80")
	w.t.Run("ThreeMembersBecomeReady", func(t *testing.T) { w.in(t).provision80(group80) })
	if t.Failed() {
		return
	}
	w.playInTurn([]step{
		{"WritesReachSecondaries", (*world).writesReachReplicas, inAll},
		{"SwitchoverUnderWrites", (*world).switchoverUnderWrites, inAll},
		{"MysqldOfPrimaryKilled", (*world).groupPrimaryKilled, inAll},
		{"GroupLostAndMadeAnew", (*world).groupLostAndMadeAnew, inAll},
		{"DeletedClusterLeavesNothing", (*world).deletedClusterLeavesNothing, inAll},
	})
}

func (w *world) provision80(spec string) {
	image, err := bed.LoadMySQL(w.ctx, "8.0")
	if err != nil {
		w.t.Fatal(err)
	}
	w.apply(strings.ReplaceAll(spec, "%IMAGE%", image))
	c := w.healthy(4 * time.Minute)
	for _, in := range c.Status.InstancesReported {
		if !strings.HasPrefix(in.Version, "8.0.") {
			w.t.Errorf("%s runs %s", in.Name, in.Version)
		}
	}
}

// upgradeTooFar: MySQL goes from one long-term series to the next, and 9.7 refuses the data
// of 8.0. One replica is tried, says so, and is mended by the former image; nobody else is
// touched.
func (w *world) upgradeTooFar() {
	primary, pods := w.primary(), w.podUIDs()
	l := w.startWriting()
	image := w.cluster().Spec.ImageName
	wish := func(image string) {
		w.kubectl("-n", w.key.Namespace, "patch", "cluster", w.key.Name, "--type=merge", "-p",
			`{"spec":{"imageName":"`+image+`"}}`)
	}
	wish(testbed.MySQLImage)
	c := w.becomes(3*time.Minute, func(c *v1alpha1.Cluster) bool {
		return c.Status.Phase != "Healthy" && strings.Contains(c.Status.PhaseReason, "upgrade")
	})
	w.t.Logf("%s: %s", c.Status.Phase, c.Status.PhaseReason)
	changed := 0
	for name, uid := range w.podUIDs() {
		if uid != pods[name] {
			changed++
		}
	}
	if changed != 1 || w.primary() != primary {
		w.t.Errorf("%d Pods were replaced; the primary was %s and is %s", changed, primary, w.primary())
	}
	wish(image)
	w.healthy(3 * time.Minute)
	l.stopAndLoseNothing()
}
