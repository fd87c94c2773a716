//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
)

const quorum = `
  instances: 3
  storage: {size: 1Gi}
  mysql: {semiSync: {enabled: true, dataDurability: quorum}}
`

func (w *world) writesReachReplicas() {
	l := w.startWriting()
	l.ackedAfter(time.Now().Add(time.Second), 10*time.Second)
	report := l.stopAndLoseNothing()
	executed := w.settled()
	db := w.open("ro")
	for range 8 {
		if got := w.ask(db, "SELECT WAIT_FOR_EXECUTED_GTID_SET('"+executed+"', 10)"); got != "0" {
			w.t.Fatalf("a replica has not executed %s after 10 s", executed)
		}
		if v, err := l.Verify(w.ctx, db); err != nil || !v.OK() {
			w.t.Fatalf("a replica differs: %v %+v", err, v)
		}
	}
	if report.Acknowledged == 0 {
		w.t.Error("nothing was written")
	}
}

func (w *world) servicesRouteByRole() {
	w.routeByRole("rw", "ro", "r")
	if _, err := w.open("ro").ExecContext(w.ctx, "CREATE TABLE app.nowhere (id INT PRIMARY KEY)"); err == nil {
		w.t.Error("a write through -ro succeeded")
	}
}

// portsAreReserved: the kernel gives no connection of the Pod a port where mysqld listens.
func (w *world) portsAreReserved() {
	const ports = "/proc/sys/net/ipv4/ip_local_reserved_ports"
	said, err := exec.Command("nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", w.pid(w.replica(), "mysqld")),
		"cat", ports).Output()
	if err != nil {
		w.t.Fatal(err)
	}
	if got, want := strings.TrimSpace(string(said)), "3306,8080-8081,9187,33061-33062"; got != want {
		w.t.Errorf("%s is %q, and not %q", ports, got, want)
	}
}

func (w *world) foreignAnnotationSurvives() {
	name := w.replica()
	w.kubectl("-n", w.key.Namespace, "annotate", "pod", name, "example.com/mine=yes")
	w.kubectl("-n", w.key.Namespace, "label", "service", w.key.Name+"-rw", "example.com/mine=yes")
	to := w.replica()
	w.switchTo(to)
	w.becomes(time.Minute, func(c *v1alpha1.Cluster) bool {
		return c.Status.CurrentPrimary == to && c.Status.Phase == "Healthy"
	})
	if w.pod(name).Annotations["example.com/mine"] != "yes" {
		w.t.Errorf("the annotation on Pod %s is gone", name)
	}
	var rw corev1.Service
	if err := bed.Client.Get(w.ctx, client.ObjectKey{Namespace: w.key.Namespace, Name: w.key.Name + "-rw"},
		&rw); err != nil || rw.Labels["example.com/mine"] != "yes" {
		w.t.Errorf("the label on the Service is gone (%v): %v", err, rw.Labels)
	}
	w.kubectl("-n", w.key.Namespace, "annotate", "pod", name, "example.com/mine-")
	w.kubectl("-n", w.key.Namespace, "label", "service", w.key.Name+"-rw", "example.com/mine-")
}

func (w *world) steadyStateWritesNothing() {
	objects := func() string {
		return w.kubectl("-n", w.key.Namespace, "get",
			"services,secrets,poddisruptionbudgets,serviceaccounts,roles,rolebindings", "-o",
			`jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.resourceVersion}{"\n"}{end}`)
	}
	w.rests()
	before, had := w.cluster().ResourceVersion, objects()
	tick := time.NewTimer(12 * time.Second)
	defer tick.Stop()
	<-tick.C
	if after := w.cluster(); after.ResourceVersion != before {
		w.t.Errorf("the Cluster was written without cause within 12 s (resourceVersion %s, then %s): %s", before,
			after.ResourceVersion, after.Status.PhaseReason)
	}
	if has := objects(); has != had {
		w.t.Errorf("something was written without cause within 12 s:\n%s\nthen\n%s", had, has)
	}
}

// rests waits until nothing was written to the Cluster for three seconds: the end of its making is told last.
func (w *world) rests() {
	w.t.Helper()
	last, since := "", time.Now()
	err := wait.PollUntilContextTimeout(w.ctx, 200*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) {
			if is := w.cluster().ResourceVersion; is != last {
				last, since = is, time.Now()
			}
			return time.Since(since) >= 3*time.Second, nil
		})
	if err != nil {
		w.t.Fatal("the Cluster is written to all the time")
	}
}

func (w *world) replicaPodDeleted() {
	pod := w.pod(w.replica())
	primary := w.primary()
	l := w.startWriting()
	w.deletePod(pod.Name)
	w.replaced(pod, time.Minute)
	w.healthy(time.Minute)
	l.stopAndLoseNothing()
	if got := w.primary(); got != primary {
		w.t.Errorf("the primary changed from %s to %s for nothing", primary, got)
	}
}

func (w *world) replicaVolumeDeleted() {
	l := w.startWriting()
	w.loseVolume(w.replica())
	w.healthy(2 * time.Minute)
	l.stopAndLoseNothing()
	w.writesReachReplicas()
}

// loseVolume deletes an instance's claim and Pod and waits for new ones.
func (w *world) loseVolume(instance string) {
	w.t.Helper()
	pod := w.pod(instance)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.key.Namespace, Name: instance}}
	if err := bed.Client.Delete(w.ctx, claim); err != nil {
		w.t.Fatal(err)
	}
	// The operator may have deleted the Pod already, seeing its claim go.
	if err := bed.Client.Delete(w.ctx, pod); client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	w.replaced(pod, time.Minute)
}

// scaledDownAndUp: the volume of who goes is kept, and who comes is another.
func (w *world) scaledDownAndUp() {
	former, claims := w.cluster().Status.InstanceNames, strings.Fields(w.left("pvc"))
	l := w.startWriting()
	w.scale(2)
	c := w.becomes(2*time.Minute, func(c *v1alpha1.Cluster) bool {
		return c.Status.Instances == 2 && c.Status.Phase == "Healthy"
	})
	stayed := c.Status.InstanceNames
	w.scale(3)
	c = w.becomes(2*time.Minute, func(c *v1alpha1.Cluster) bool {
		return c.Status.ReadyInstances == 3 && c.Status.Phase == "Healthy"
	})
	l.stopAndLoseNothing()
	came := slices.DeleteFunc(slices.Clone(c.Status.InstanceNames), func(name string) bool {
		return slices.Contains(stayed, name)
	})
	if len(stayed) != 2 || len(came) != 1 || slices.Contains(claims, claimPrefix+came[0]) ||
		!isPartOf(stayed, former) || !isPartOf(stayed, c.Status.InstanceNames) {
		w.t.Errorf("the instances were %v, then %v, and are %v; the claims were %v", former, stayed,
			c.Status.InstanceNames, claims)
	}
	want := append(claims, claimPrefix+came[0])
	if left := strings.Fields(w.left("pvc")); !isPartOf(want, left) || len(left) != len(want) {
		w.t.Errorf("the claims are %v, want %v", left, want)
	}
}

// claimPrefix stands before the name of a claim, as kubectl tells it.
const claimPrefix = "persistentvolumeclaim/"

func isPartOf(some, all []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

// left are the objects of some kinds in the namespace.
func (w *world) left(kinds string) string {
	return strings.Join(strings.Fields(w.kubectl("-n", w.key.Namespace, "get", kinds, "-o", "name",
		"--sort-by=.metadata.name")), " ")
}

func (w *world) deletedClusterLeavesItsVolumes() { w.leavesItsVolumes(quorum) }

// leavesItsVolumes: another Cluster of its name and manifest makes nothing beside them, and goes
// on with all that was acknowledged when it is told to.
func (w *world) leavesItsVolumes(manifest string) {
	l := w.startWriting()
	l.ackedAfter(time.Now().Add(time.Second), 10*time.Second)
	l.stopAndLoseNothing()
	claims, former := w.left("pvc"), w.cluster()
	w.kubectl("-n", w.key.Namespace, "delete", "cluster", w.key.Name, "--wait=true")
	w.awaitLeft(claims)
	w.apply(manifest)
	w.becomes(time.Minute, func(c *v1alpha1.Cluster) bool {
		return c.Status.Phase == "Blocked" && strings.Contains(c.Status.PhaseReason,
			"adopt-volumes="+string(former.UID))
	})
	w.kubectl("-n", w.key.Namespace, "annotate", "cluster", w.key.Name, v1alpha1.AnnotationAdoptVolumes+
		"="+string(former.UID))
	begun := time.Now()
	c := w.healthy(2 * time.Minute)
	w.t.Logf("healthy %s after the volumes were to be adopted", time.Since(begun))
	if !slices.Equal(c.Status.InstanceNames, former.Status.InstanceNames) || w.left("pvc") != claims {
		w.t.Errorf("the instances are %v, and were %v; the claims are %s", c.Status.InstanceNames,
			former.Status.InstanceNames, w.left("pvc"))
	}
	if v, err := l.VerifyWithin(w.ctx, w.open("rw"), time.Minute); err != nil || !v.OK() {
		w.t.Errorf("not all that was acknowledged is there: %v %+v", err, v)
	}
	w.writesReachReplicas()
	w.deletedClusterLeavesNothing()
}

// deletedClusterLeavesNothing when that is asked for.
func (w *world) deletedClusterLeavesNothing() {
	w.kubectl("-n", w.key.Namespace, "patch", "cluster", w.key.Name, "--type=merge", "-p",
		`{"spec":{"storage":{"whenDeleted":"Delete"}}}`)
	w.becomes(time.Minute, func(c *v1alpha1.Cluster) bool { return c.Status.ObservedGeneration == c.Generation })
	w.kubectl("-n", w.key.Namespace, "delete", "cluster", w.key.Name, "--wait=true")
	w.awaitLeft("")
}

// awaitLeft waits until nothing is left of a Cluster but what is named.
func (w *world) awaitLeft(want string) {
	w.t.Helper()
	var left string
	err := wait.PollUntilContextTimeout(w.ctx, 500*time.Millisecond, 2*time.Minute, true,
		func(context.Context) (bool, error) {
			left = w.left("pod,pvc,service,secret,serviceaccount,role,rolebinding,poddisruptionbudget,lease")
			left = strings.TrimSpace(strings.ReplaceAll(left, "serviceaccount/default", ""))
			return left == want, nil
		})
	if err != nil {
		w.t.Errorf("a deleted Cluster leaves behind %q, and not %q", left, want)
	}
}
