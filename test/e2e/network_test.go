//go:build e2e

package e2e

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	coordination "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/test/testbed"
)

const quorumSpec = `
  instances: 3
  affinity: {podAntiAffinityType: required}
  storage: {size: 1Gi}
  mysql:
    semiSync: {enabled: true, dataDurability: quorum}
`

// replacedByItsLease replaces a primary on a lost node without quorum: only its lease and
// the vouches of its peers tell that it has stopped.
func (w *world) replacedByItsLease() {
	w.awayFromOperator()
	old := w.primary()
	node := w.pod(old).Spec.NodeName
	l := w.startWriting()
	at := w.fault("partition", node)
	outage := l.outageSince(at, time.Minute)
	w.t.Logf("writable %s after the partition (%s)", outage, w.proof())
	if limit := 18*time.Second + 2*time.Second; outage > limit || w.proof() != "LeaseExpired" {
		w.t.Errorf("writable after %s by %s; wanted at most %s by LeaseExpired", outage, w.proof(), limit)
	}
	w.fault("heal", node)
	w.becomes(3*time.Minute, func(c *v1alpha1.Cluster) bool {
		return testbed.Healthy(c) || slices.Contains(c.Status.DivergedInstances, old)
	})
	l.Stop()
}

// fault runs a command of the local Kubernetes on a node; it is taken back when
// the test ends.
func (w *world) fault(verb, node string) time.Time {
	w.t.Helper()
	back := map[string]string{"partition": "heal", "poweroff": "poweron"}[verb]
	args := strings.Fields(node)
	if back != "" {
		w.t.Cleanup(func() {
			if out, err := bed.Localkube(w.ctx, back, args[0]); err != nil {
				w.t.Error(err, out)
			}
		})
	}
	at := time.Now()
	if out, err := bed.Localkube(w.ctx, append([]string{verb}, args...)...); err != nil {
		w.t.Fatal(err, out)
	}
	return at
}

func (w *world) proof() string { return w.cluster().Status.Promotion.Proof }

// besideOperator moves the primary to the node on which the leading operator runs.
func (w *world) besideOperator() {
	w.t.Helper()
	w.beside(w.leader())
}

// beside moves the primary to the node of a Pod.
func (w *world) beside(operator *corev1.Pod) {
	w.t.Helper()
	here := operator.Spec.NodeName
	if w.pod(w.primary()).Spec.NodeName == here {
		return
	}
	names := w.cluster().Status.InstanceNames
	to := names[slices.IndexFunc(names, func(name string) bool { return w.pod(name).Spec.NodeName == here })]
	w.switchTo(to)
	w.becomes(time.Minute, func(c *v1alpha1.Cluster) bool {
		return c.Status.CurrentPrimary == to && testbed.Healthy(c)
	})
}

// awayFromOperator moves the primary to a node on which the leading operator does
// not run: what is measured is the loss of the primary alone.
func (w *world) awayFromOperator() {
	w.t.Helper()
	leader := w.leader()
	if w.pod(w.primary()).Spec.NodeName != leader.Spec.NodeName {
		return
	}
	to := w.replica()
	w.switchTo(to)
	w.becomes(time.Minute, func(c *v1alpha1.Cluster) bool {
		return c.Status.CurrentPrimary == to && testbed.Healthy(c)
	})
}

// besideStandby moves the primary to the node on which the operator runs that does not lead.
func (w *world) besideStandby() {
	w.t.Helper()
	standby, err := bed.Standby(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	w.beside(standby)
}

// outageOfAPI is longer than a lease lasts.
const outageOfAPI = 25 * time.Second

// longOutageOfAPI is so long that what was sent in it is sent again by itself only 10 s or
// more after it has ended.
const longOutageOfAPI = 32 * time.Second

// renewsAfter: the primary renews its lease once it can. After an outage of the API server,
// who is to be promoted takes it over the same connections.
func (w *world) renewsAfter(back time.Time, limit time.Duration) {
	w.t.Helper()
	key := types.NamespacedName{Namespace: w.key.Namespace, Name: w.key.Name + "-primary"}
	ctx, cancel := context.WithTimeout(w.ctx, limit)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var lease coordination.Lease
		err := bed.Client.Get(ctx, key, &lease)
		return err == nil && lease.Spec.RenewTime != nil && lease.Spec.RenewTime.After(back), nil
	})
	if err != nil {
		w.t.Errorf("the primary did not renew its lease within %s", limit)
		return
	}
	w.t.Logf("the primary renewed its lease after %s", time.Since(back))
}

// leaseDeleted: the operator makes the record again, and the primary takes it.
func (w *world) leaseDeleted() {
	primary := w.primary()
	l := w.startWriting()
	lease := &coordination.Lease{}
	lease.Namespace, lease.Name = w.key.Namespace, w.key.Name+"-primary"
	if err := bed.Client.Delete(w.ctx, lease); err != nil {
		w.t.Fatal(err)
	}
	w.renewsAfter(time.Now(), core.LeaseGrace)
	w.goesOn(l, primary)
}

// primaryCutFromAPI: peers vouch for the primary, and the operator reaches it.
func (w *world) primaryCutFromAPI() {
	primary := w.primary()
	node := w.pod(primary).Spec.NodeName
	l := w.startWriting()
	w.fault("partition", node+" --from api")
	l.ackedAfter(time.Now().Add(outageOfAPI), time.Minute)
	w.fault("heal", node)
	w.goesOn(l, primary)
}

// everybodyCutFromAPI: no lease can be renewed by anybody. The operators wait where they are: a container that ends
// is started again after ever longer pauses.
func (w *world) everybodyCutFromAPI() {
	primary, started := w.primary(), w.operatorsStarted()
	nodes := strings.Fields(w.kubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}"))
	l := w.startWriting()
	for _, node := range nodes {
		w.fault("partition", node+" --from api")
	}
	l.ackedAfter(time.Now().Add(longOutageOfAPI), time.Minute)
	// When the API server is back it takes all nodes for lost, and all endpoints
	// with them, until their kubelets report: what was written before counts.
	gap := l.Stop().LongestGap.Duration()
	for _, node := range nodes {
		w.fault("heal", node)
	}
	w.renewsAfter(time.Now(), 8*time.Second)
	if gap > 2*time.Second {
		w.t.Errorf("without the API server nothing could be written for %s", gap)
	}
	w.goesOn(l, primary)
	if now := w.operatorsStarted(); !maps.Equal(now, started) {
		w.t.Errorf("the operators' containers ended: starts of each Pod were %v, and are %v", started, now)
	}
}

// goesOn: nothing but the network has changed.
func (w *world) goesOn(l *load, primary string) {
	w.t.Helper()
	w.healthy(2 * time.Minute)
	report := l.stopAndLoseNothing()
	if gap := report.LongestGap.Duration(); gap > 2*time.Second {
		w.t.Errorf("nothing could be written for %s", gap)
	}
	if now := w.primary(); now != primary {
		w.t.Errorf("%s was replaced by %s", primary, now)
	}
}

func (w *world) primaryNodePartitioned() {
	w.awayFromOperator()
	w.primaryNodeLost("partition", "heal", lostLimit)
}

func (w *world) primaryNodePoweredOff() {
	w.awayFromOperator()
	w.primaryNodeLost("poweroff", "poweron", lostLimit)
}

// primaryAndOperatorPoweredOff: the standby does not wait until the leader's lease has run
// out, which takes ten seconds more than what is allowed here.
func (w *world) primaryAndOperatorPoweredOff() {
	w.besideOperator()
	w.primaryNodeLost("poweroff", "poweron", 10*time.Second)
}

// lostLimit is how long writes may be refused when a node is lost under quorum, by an
// operator that has just come back from an outage itself.
const lostLimit = 25 * time.Second

func (w *world) primaryNodeLost(verb, back string, limit time.Duration) {
	old := w.primary()
	node := w.pod(old).Spec.NodeName
	l := w.startWriting()
	at := w.fault(verb, node)
	outage := l.outageSince(at, 2*time.Minute)
	w.t.Logf("%s: writable %s after it, proof %s", verb, outage, w.proof())
	if outage > limit || w.proof() != "QuorumCut" {
		w.t.Errorf("writable %s after %s by %s; wanted at most %s by QuorumCut", outage, verb, w.proof(), limit)
	}
	w.fault(back, node)
	w.moved(old, 3*time.Minute)
	l.stopAndLoseNothing()
}

// primaryCutFromNodes: the API server is reached by all, peers and the operator
// are not.
func (w *world) primaryCutFromNodes() {
	w.awayFromOperator()
	old := w.primary()
	node := w.pod(old).Spec.NodeName
	l := w.startWriting()
	at := w.fault("partition", node+" --from nodes")
	outage := l.outageSince(at, 2*time.Minute)
	w.t.Logf("writable %s after it, proof %s", outage, w.proof())
	w.fault("heal", node)
	w.moved(old, 3*time.Minute)
	l.stopAndLoseNothing()
}

// primaryCutOneWay: the API server is reached by all; between the primary's node and
// the others packets go one way only. The operator that does not lead is cut off with it,
// and does not take the lead.
func (w *world) primaryCutOneWay(way string) {
	w.besideStandby()
	old := w.primary()
	node := w.pod(old).Spec.NodeName
	l := w.startWriting()
	at := w.fault("partition", node+" --from nodes --direction "+way)
	outage := l.outageSince(at, 2*time.Minute)
	w.t.Logf("writable %s after it, proof %s", outage, w.proof())
	if outage > lostLimit {
		w.t.Errorf("at most %s is wanted", lostLimit)
	}
	w.fault("heal", node)
	w.moved(old, 3*time.Minute)
	l.endsWell(time.Minute)
}

// primaryNodeDrained: the PodDisruptionBudget lets the primary go, which hands over.
func (w *world) primaryNodeDrained() {
	old := w.pod(w.primary())
	l := w.startWriting()
	w.t.Cleanup(func() { w.kubectl("uncordon", old.Spec.NodeName) })
	w.kubectl("drain", old.Spec.NodeName, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=90s",
		"--pod-selector="+v1alpha1.LabelCluster+"="+w.key.Name)
	w.becomes(time.Minute, func(c *v1alpha1.Cluster) bool { return c.Status.CurrentPrimary != old.Name })
	w.kubectl("uncordon", old.Spec.NodeName)
	w.replaced(old, time.Minute)
	l.endsWell(3 * time.Minute)
	if gap := l.Stop().LongestGap.Duration(); gap > outageLimit {
		w.t.Errorf("nothing could be written for %s", gap)
	}
}

func (w *world) replicaNodePartitioned() {
	primary := w.primary()
	node := w.pod(w.replica()).Spec.NodeName
	l := w.startWriting()
	w.fault("partition", node)
	w.becomes(time.Minute, func(c *v1alpha1.Cluster) bool { return c.Status.Phase != "Healthy" })
	l.ackedAfter(time.Now().Add(20*time.Second), time.Minute)
	w.fault("heal", node)
	w.goesOn(l, primary)
}
