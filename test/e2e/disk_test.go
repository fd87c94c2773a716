//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/test/testbed"
)

// stallLimit is how long writes may be refused when a disk stalls: until it is taken
// for stalled, until its primary's commits can be acknowledged by nobody, and the
// promotion.
const stallLimit = 12 * time.Second

// TestStalledDisk freezes the file system of the primary's volume: its mysqld goes on
// answering whatever needs no write.
func TestStalledDisk(t *testing.T) {
	onlyInAll(t)
	w := newWorld(t, "stall")
	mount := loopMount(t)
	nodes := strings.Fields(w.kubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}"))
	for i, node := range nodes {
		dir := mount
		if i > 0 {
			dir = t.TempDir()
			if err := os.Chmod(dir, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		w.kubectl("apply", "-f", w.file(fmt.Sprintf(stallVolume, node, dir, node)))
	}
	w.endsBeforeItsVolumes()
	t.Cleanup(func() {
		w.kubectl("delete", "storageclass", "stall")
		for _, node := range nodes {
			w.kubectl("delete", "persistentvolume", "stall-"+node, "--wait=false")
		}
	})
	w.apply(strings.Replace(quorumSpec, "storage: {size: 1Gi}", "storage: {size: 1Gi, storageClass: stall}", 1))
	w.healthy(3 * time.Minute)
	w.onNode(nodes[0])
	old := w.primary()
	l := w.startWriting()
	at := w.freeze(mount)
	outage := l.outageSince(at, time.Minute)
	t.Logf("writable %s after the disk stalled, by %s: %s", outage, w.proof(), w.cluster().Status.PhaseReason)
	if outage > stallLimit {
		t.Errorf("at most %s is wanted", stallLimit)
	}
	w.becomes(10*time.Second, func(c *v1alpha1.Cluster) bool { return strings.Contains(c.Status.PhaseReason, old) })
	w.thaw(mount)
	w.moved(old, 2*time.Minute)
	l.endsWell(time.Minute)
}

// onNode makes the instance on a node the primary.
func (w *world) onNode(node string) {
	w.t.Helper()
	for _, name := range w.replicas() {
		if w.pod(name).Spec.NodeName == node {
			w.switchTo(name)
			w.becomes(time.Minute, func(c *v1alpha1.Cluster) bool {
				return c.Status.CurrentPrimary == name && testbed.Healthy(c)
			})
		}
	}
}

// loopMount mounts a file as a file system of its own, until the test ends.
func loopMount(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	image, mount := filepath.Join(dir, "image"), filepath.Join(dir, "mount")
	if err := os.Mkdir(mount, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, argv := range [][]string{
		{"truncate", "--size=3G", image}, {"mkfs.ext4", "-q", "-F", image}, {"mount", "-o", "loop", image, mount},
		{"chmod", "0777", mount},
	} {
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v %s", argv, err, out)
		}
	}
	t.Cleanup(func() { _ = unix.Unmount(mount, unix.MNT_DETACH) })
	return mount
}

func (w *world) freeze(mount string) time.Time {
	w.t.Helper()
	at := time.Now()
	if out, err := exec.Command("fsfreeze", "--freeze", mount).CombinedOutput(); err != nil {
		w.t.Fatal(err, string(out))
	}
	w.t.Cleanup(func() { _ = exec.Command("fsfreeze", "--unfreeze", mount).Run() }) // it may be thawed by now
	return at
}

func (w *world) thaw(mount string) {
	w.t.Helper()
	if out, err := exec.Command("fsfreeze", "--unfreeze", mount).CombinedOutput(); err != nil {
		w.t.Fatal(err, string(out))
	}
}

const stallVolume = `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: stall}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: stall-%s}
spec:
  storageClassName: stall
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  hostPath: {path: %s}
  nodeAffinity:
    required:
      nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%s]}]}]
`
