//go:build e2e

package e2e

import (
	"context"
	"maps"
	"slices"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/test/testbed"
)

// losesMajority cuts all nodes off but the primary's, and tells which. The primary is
// beside the leading operator before: what is tested is the loss of a majority, not that
// of the operator.
func (w *world) losesMajority() (nodes []string) {
	w.t.Helper()
	w.besideOperator()
	here := w.pod(w.primary()).Spec.NodeName
	for _, name := range w.cluster().Status.InstanceNames {
		if node := w.pod(name).Spec.NodeName; node != here && !slices.Contains(nodes, node) {
			nodes = append(nodes, node)
		}
	}
	for _, node := range nodes {
		w.fault("partition", node)
	}
	c := w.becomes(2*time.Minute, func(c *v1alpha1.Cluster) bool {
		return c.Status.Phase == "Blocked" && !c.Status.GroupReplication.HasQuorum &&
			c.Status.Diagnosis == "GroupQuorumLost"
	})
	w.t.Log(c.Status.PhaseReason)
	w.eventSays("QuorumLost")
	return nodes
}

func (w *world) heals(nodes []string) {
	for _, node := range nodes {
		w.fault("heal", node)
	}
}

// quorumLostAndForced: nothing happens by itself; on a human's word the one that is left goes on,
// although the operator is killed as soon as it was said. Who comes back and had received what it
// lacked is kept out, although the group has given the same numbers since, until a human has it
// recreated.
func (w *world) quorumLostAndForced() {
	l := w.startWriting()
	lost := w.losesMajority()
	at := time.Now()
	w.kubectl("-n", w.key.Namespace, "annotate", "cluster", w.key.Name, v1alpha1.AnnotationForceQuorum+"=true")
	w.killLeader()
	// The group settles what was under way first: docs/group-replication.md.
	outage := l.ackedAfter(at, 4*time.Minute)
	w.t.Logf("writable %s after the recovery was asked for", outage)
	w.eventSays("QuorumRecoveryForced")
	excluded := w.cluster().Status.GroupReplication.LeftOut
	if len(excluded) != 2 || excluded[0].Held == "" {
		w.t.Errorf("those who are left out are compared with nothing: %+v", excluded)
	}
	l.stopAndLoseNothing()
	w.heals(lost)
	w.healedByReinit()
	if _, still := w.cluster().Annotations[v1alpha1.AnnotationForceQuorum]; still {
		w.t.Error("the annotation is still there: it would be carried out again")
	}
	l.sameEverywhere()
}

// groupLostAndMadeAnew: all mysqld die at once. The group is gone, and comes back on a
// human's word only, from whoever holds everything.
func (w *world) groupLostAndMadeAnew() {
	l := w.startWriting()
	l.ackedAfter(time.Now().Add(time.Second), 10*time.Second)
	for _, name := range w.cluster().Status.InstanceNames {
		w.killMysqld(name)
	}
	w.becomes(2*time.Minute, func(c *v1alpha1.Cluster) bool { return c.Status.Phase == "Blocked" })
	w.allOffline()
	at := time.Now()
	w.killOperatorAfter(func() {
		w.kubectl("-n", w.key.Namespace, "annotate", "cluster", w.key.Name, v1alpha1.AnnotationForceQuorum+"=true")
	})
	w.t.Logf("writable %s after the recovery was asked for", l.ackedAfter(at, time.Minute))
	w.healthy(3 * time.Minute)
	l.stopAndLoseNothing()
}

// madeAnewLimit is how long writes may be refused until every mysqld is back on a busy machine, another operator
// leads, and the group is made.
const madeAnewLimit = 45 * time.Second

// groupMadeAnewByItself: nobody says a word, and the operator is lost with the members.
func (w *world) groupMadeAnewByItself() {
	recovers := func(who string) {
		w.kubectl("-n", w.key.Namespace, "patch", "cluster", w.key.Name, "--type=merge", "-p",
			`{"spec":{"replication":{"groupReplication":{"recoverTotalOutage":"`+who+`"}}}}`)
	}
	recovers(v1alpha1.TotalOutageAutomatic)
	l := w.startWriting()
	l.ackedAfter(time.Now().Add(time.Second), 10*time.Second)
	pods, leading := w.podUIDs(), w.leading()
	at := time.Now()
	for _, name := range w.cluster().Status.InstanceNames {
		w.killMysqld(name)
	}
	leading.all(syscall.SIGKILL)
	outage := l.outageSince(at, 2*time.Minute)
	w.t.Logf("writable %s after all mysqld were killed", outage)
	if outage > madeAnewLimit {
		w.t.Errorf("at most %s is wanted", madeAnewLimit)
	}
	w.healthy(3 * time.Minute)
	l.stopAndLoseNothing()
	if after := w.podUIDs(); !maps.Equal(after, pods) {
		w.t.Errorf("the Pods are %v, and were %v", after, pods)
	}
	recovers(v1alpha1.TotalOutageManual)
}

func (w *world) podUIDs() map[string]types.UID {
	uids := map[string]types.UID{}
	for _, name := range w.cluster().Status.InstanceNames {
		uids[name] = w.pod(name).UID
	}
	return uids
}

func (w *world) allOffline() {
	w.t.Helper()
	w.becomes(time.Minute, func(c *v1alpha1.Cluster) bool {
		return !slices.ContainsFunc(c.Status.GroupReplication.Members, func(m v1alpha1.GroupMember) bool {
			return m.State != "OFFLINE" || !m.Reachable
		})
	})
}

// twoOfFiveLost: a node with two members is cut off, and three are a majority.
func (w *world) twoOfFiveLost() {
	w.awayFromOperator()
	on := map[string]int{}
	for _, name := range w.cluster().Status.InstanceNames {
		on[w.pod(name).Spec.NodeName]++
	}
	delete(on, w.pod(w.primary()).Spec.NodeName)
	node := slices.MaxFunc(slices.Collect(maps.Keys(on)), func(a, b string) int { return on[a] - on[b] })
	if on[node] != 2 {
		w.t.Fatalf("five members are on the nodes beside the primary's as %v", on)
	}
	primary := w.primary()
	l := w.startWriting()
	at := w.fault("partition", node)
	outage := l.outageSince(at, 2*time.Minute)
	w.t.Logf("writable %s after two of five were cut off", outage)
	l.ackedAfter(at.Add(groupOutage+3*time.Second), time.Minute)
	l.stopAndLoseNothing()
	w.comeBackBeside(primary, node)
	l.sameEverywhere()
}

// majorityCutOff: what is left waits, and goes on by itself when the others are back, although
// the operator is killed at that moment. mysqld may expel some of them all the same, seconds
// after all were well.
func (w *world) majorityCutOff() {
	l := w.startWriting()
	lost := w.losesMajority()
	w.killLeader()
	w.heals(lost)
	l.ackedAfter(time.Now(), time.Minute)
	w.eventSays("QuorumRestored")
	w.staysHealthy(10*time.Second, 3*time.Minute)
	l.stopAndLoseNothing()
	l.sameEverywhere()
}

// staysHealthy waits until the cluster has been healthy, in one view of its group, for so
// long.
func (w *world) staysHealthy(long, within time.Duration) {
	w.t.Helper()
	since, view := time.Now(), ""
	err := wait.PollUntilContextTimeout(w.ctx, 200*time.Millisecond, within, true,
		func(ctx context.Context) (bool, error) {
			c, err := bed.Get(ctx, w.key)
			if err != nil {
				return false, err
			}
			if now := c.Status.GroupReplication.ViewID; now != view || !testbed.Healthy(c) {
				since, view = time.Now(), now
			}
			return time.Since(since) >= long, nil
		})
	if err != nil {
		w.t.Fatalf("it was not healthy for %s: %v", long, err)
	}
}
