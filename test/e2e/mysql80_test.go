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

// TestMySQL80: what TestCluster shows first holds on the oldest series that is promised, and the
// upgrade that MySQL does not know is refused.
func TestMySQL80(t *testing.T) {
	onlyInAll(t)
	makes := func(w *world) { w.provision80(quorum80) }
	newStory(t, "mysql80", makes).play([]step{
		{"ThreeInstancesBecomeReady", makes, inAll, nothing},
		{"WritesReachReplicas", (*world).writesReachReplicas, inAll, three},
		{"SwitchoverUnderWrites", (*world).switchoverUnderWrites, inAll, three},
		{"MysqldOfPrimaryKilled", (*world).mysqldOfPrimaryKilled, inAll, three},
		{"PrimaryPodForceDeleted", (*world).primaryPodForceDeleted, inAll, three},
		{"PrimaryPodDeleted", (*world).primaryPodDeleted, inAll, three},
		{"ReplicaVolumeDeleted", (*world).replicaVolumeDeleted, inAll, three},
		{"TooLongAStepIsRefused", (*world).upgradeTooFar, inAll, three},
		{"DeletedClusterLeavesNothing", (*world).deletedClusterLeavesNothing, inAll, threeForItself},
	})
}

// TestMySQL80Group: a group of the oldest series that is promised elects, and is made anew.
func TestMySQL80Group(t *testing.T) {
	onlyInAll(t)
	makes := func(w *world) { w.provision80(group80) }
	newStory(t, "group80", makes).play([]step{
		{"ThreeMembersBecomeReady", makes, inAll, nothing},
		{"WritesReachSecondaries", (*world).writesReachReplicas, inAll, three},
		{"SwitchoverUnderWrites", (*world).switchoverUnderWrites, inAll, three},
		{"MysqldOfPrimaryKilled", (*world).groupPrimaryKilled, inAll, three},
		{"GroupLostAndMadeAnew", (*world).groupLostAndMadeAnew, inAll, three},
		{"DeletedClusterLeavesNothing", (*world).deletedClusterLeavesNothing, inAll, threeForItself},
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
