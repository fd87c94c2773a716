//go:build e2e

package e2e

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/test/testbed"
)

// plugin runs kubectl cnmsql; it must succeed, and say all of these words.
func (w *world) plugin(args []string, words ...string) string {
	w.t.Helper()
	out, err := w.tryPlugin(args...)
	if err != nil {
		w.t.Fatalf("kubectl cnmsql %v: %v\n%s", args, err, out)
	}
	w.says(out, words...)
	return out
}

func (w *world) tryPlugin(args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(bed.BinDir(), "kubectl-cnmsql"), append(args, "--kubeconfig", bed.Kubeconfig,
		"-n", w.key.Namespace)...)
	if i := slices.Index(args, "--"); i >= 0 { // what follows is not the plugin's
		cmd = exec.Command(filepath.Join(bed.BinDir(), "kubectl-cnmsql"),
			slices.Concat(args[:i], []string{"--kubeconfig", bed.Kubeconfig, "-n", w.key.Namespace}, args[i:])...)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (w *world) says(text string, words ...string) {
	w.t.Helper()
	if text != "" {
		w.t.Log(text)
	}
	for _, word := range words {
		if !strings.Contains(text, word) {
			w.t.Errorf("it does not say %q", word)
		}
	}
}

// asRoot runs SQL as root inside an instance's Pod, and tells the values that come of it.
func (w *world) asRoot(instance, statements string) string {
	w.t.Helper()
	return w.plugin([]string{"mysql", w.key.Name, "--instance", instance, "--", "-Ne", statements})
}

// inSpite writes to an instance that is read-only. Its manager looks twice a second, and ends
// the sessions of a replica that it finds writable: whoever writes there all the same tries
// until the manager looks at another moment.
func (w *world) inSpite(instance, statements string) {
	w.t.Helper()
	var out string
	err := wait.PollUntilContextTimeout(w.ctx, 70*time.Millisecond, 20*time.Second, true,
		func(context.Context) (done bool, _ error) {
			var err error
			out, err = w.tryPlugin("mysql", w.key.Name, "--instance", instance, "--", "-Ne",
				"SET GLOBAL super_read_only = 0; "+statements+"; SET GLOBAL super_read_only = 1")
			return err == nil, nil
		})
	if err != nil {
		w.t.Fatalf("writing to %s in spite of its manager: %v\n%s", instance, err, out)
	}
}

func (w *world) fencedReplica() {
	replica := w.replica()
	w.plugin([]string{"fence", "on", w.key.Name, replica}, replica)
	w.becomes(20*time.Second, func(c *v1alpha1.Cluster) bool {
		return slices.Contains(c.Status.FencedInstances, replica)
	})
	w.waitRouted("r", replica, false)
	w.becomes(30*time.Second, isFenced(replica))
	if _, err := bed.MysqldPID(w.ctx, w.key, replica); err == nil {
		w.t.Error("mysqld of the fenced instance runs")
	}
	w.plugin([]string{"status", w.key.Name}, "fenced", "fence off")
	w.plugin([]string{"fence", "off", w.key.Name, replica}, replica)
	w.healthy(time.Minute)
	w.waitRouted("r", replica, true)
}

// isFenced reports whether an instance has said that its mysqld is stopped because it is fenced.
func isFenced(instance string) func(*v1alpha1.Cluster) bool {
	return func(c *v1alpha1.Cluster) bool {
		return slices.ContainsFunc(c.Status.InstancesReported, func(in v1alpha1.InstanceStatus) bool {
			return in.Name == instance && in.State == "Fenced"
		})
	}
}

// waitRouted waits until a Service leads to an instance, or does not.
func (w *world) waitRouted(service, instance string, wanted bool) {
	w.t.Helper()
	ip, seen := w.pod(instance).Status.PodIP, ""
	for began := time.Now(); time.Since(began) < 30*time.Second; <-time.After(100 * time.Millisecond) {
		seen = w.kubectl("-n", w.key.Namespace, "get", "endpointslices", "-l", "kubernetes.io/service-name="+
			w.key.Name+"-"+service,
			"-o", `jsonpath={range .items[*].endpoints[?(@.conditions.ready==true)]}{.addresses[0]} {end}`)
		if slices.Contains(strings.Fields(seen), ip) == wanted {
			return
		}
	}
	w.t.Errorf("-%s leads to %s; that it leads to %s (%s) should be %t", service, seen, instance, ip, wanted)
}

func (w *world) fencedPrimary() {
	primary := w.primary()
	w.plugin([]string{"fence", "on", w.key.Name, primary, "--yes"}, primary)
	w.becomes(20*time.Second, func(c *v1alpha1.Cluster) bool { return c.Status.Diagnosis == "PrimaryFenced" })
	w.plugin([]string{"status", w.key.Name}, "is fenced: no instance takes writes", "fence off")
	w.becomes(30*time.Second, isFenced(primary))
	w.plugin([]string{"fence", "off", w.key.Name, primary})
	w.healthy(time.Minute)
	if now := w.primary(); now != primary {
		w.t.Errorf("%s took over from a primary that was fenced", now)
	}
}

func (w *world) reinitOfPrimaryIsRefused() {
	out, err := w.tryPlugin("reinit", w.key.Name, w.primary(), "--yes")
	if err == nil {
		w.t.Error("the data of the primary is recreated")
	}
	w.says(out, "primary", "promote")
	uid := w.pod(w.primary()).UID
	w.kubectl("-n", w.key.Namespace, "annotate", "cluster", w.key.Name, "cnmsql.cnmsql.co/reinit="+w.primary())
	w.eventSays("ReinitOfPrimaryRefused")
	if w.pod(w.primary()).UID != uid {
		w.t.Error("the primary's Pod was recreated")
	}
}

func (w *world) divergedReplica() {
	replica := w.replica()
	w.inSpite(replica, "CREATE TABLE IF NOT EXISTS app.errant (id INT PRIMARY KEY)")
	w.becomes(time.Minute, func(c *v1alpha1.Cluster) bool {
		return slices.Contains(c.Status.DivergedInstances, replica)
	})
	w.waitRouted("ro", replica, false)
	w.plugin([]string{"status", w.key.Name}, "diverged", "reinit", "transactions that "+w.primary()+" does not have")
	w.plugin([]string{"reinit", w.key.Name, replica, "--yes"}, "are recreated")
	w.healthy(2 * time.Minute)
	w.waitRouted("ro", replica, true)
}

func (w *world) brokenReplication() {
	replica := w.replica()
	w.inSpite(replica, "SET sql_log_bin = 0; CREATE TABLE IF NOT EXISTS app.clash (id INT PRIMARY KEY)")
	w.sql("CREATE TABLE app.clash (id INT PRIMARY KEY)")
	c := w.becomes(time.Minute, func(c *v1alpha1.Cluster) bool {
		return slices.Contains(c.Status.ReplicationBrokenInstances, replica) && c.Status.Phase == "Degraded"
	})
	w.says(c.Status.PhaseReason, replica, "clash")
	w.waitRouted("ro", replica, false)
	w.plugin([]string{"status", w.key.Name}, "clash", "reinit")
	w.plugin([]string{"reinit", w.key.Name, replica, "--yes"})
	w.healthy(2 * time.Minute)
	w.sql("DROP TABLE app.clash")
}

// whatIf: what is foretold comes about.
func (w *world) whatIf() {
	old, replicas := w.primary(), w.replicas()
	w.plugin([]string{"whatif", w.key.Name, "--lose", old + "," + replicas[0]}, "NOBODY is promoted", "NoProof",
		"--accept-data-loss")
	out := w.plugin([]string{"whatif", w.key.Name, "--lose", old, "--mysqld-down"}, "is promoted", "ManagerFenced")
	_, then, _ := strings.Cut(out, "Then")
	foretold, _, _ := strings.Cut(strings.TrimSpace(then), " ")
	w.killMysqld(old)
	w.moved(old, time.Minute)
	if now := w.primary(); now != foretold {
		w.t.Errorf("%s is the primary; foretold was %q", now, foretold)
	}
}

// blockedFailover: two of three are as good as gone, and a person decides.
func (w *world) blockedFailover() {
	primary, replicas := w.primary(), w.replicas()
	l := w.startWriting()
	for _, name := range []string{primary, replicas[0]} {
		for _, program := range []string{"cnmsql", "mysqld"} {
			pid, err := bed.PID(w.ctx, w.key, name, program)
			if err == nil {
				err = syscall.Kill(pid, syscall.SIGSTOP)
			}
			if err != nil {
				w.t.Fatal(err)
			}
			w.t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
		}
	}
	c := w.becomes(time.Minute, func(c *v1alpha1.Cluster) bool { return c.Status.Phase == "Blocked" })
	l.Stop()
	w.says(c.Status.PhaseReason, primary, "kubectl cnmsql failover "+w.key.Name+" --to INSTANCE --accept-data-loss")
	w.plugin([]string{"status", w.key.Name}, "Blocked", "failover")
	w.plugin([]string{"failover", w.key.Name, "--to", replicas[1], "--accept-data-loss", "--yes"},
		"WITHOUT A PROOF", replicas[1])
	w.becomes(30*time.Second, func(c *v1alpha1.Cluster) bool { return c.Status.CurrentPrimary == replicas[1] })
	if proof := w.proof(); proof != "AcceptedDataLoss" {
		w.t.Errorf("the promotion's proof is %s", proof)
	}
	w.plugin([]string{"events", w.key.Name}, "FailoverEnded", replicas[1]+" takes writes, after "+primary,
		"proof AcceptedDataLoss", "MysqldStarted", "DataLossAccepted")
	for _, name := range []string{primary, replicas[0]} {
		w.signal(name, "mysqld", syscall.SIGCONT)
		w.signal(name, "cnmsql", syscall.SIGCONT)
	}
	w.healedByReinit()
}

// healedByReinit: whoever comes back with more than was promoted is recreated.
func (w *world) healedByReinit() {
	var asked []string
	for {
		var found []string
		w.becomes(2*time.Minute, func(c *v1alpha1.Cluster) bool {
			found = slices.DeleteFunc(slices.Clone(c.Status.DivergedInstances), func(name string) bool {
				return slices.Contains(asked, name)
			})
			return len(found) > 0 || testbed.Healthy(c)
		})
		if len(found) == 0 {
			return
		}
		for _, name := range found {
			w.plugin([]string{"reinit", w.key.Name, name, "--yes"})
		}
		asked = append(asked, found...)
	}
}
