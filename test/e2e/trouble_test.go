//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/test/testbed"
)

const single = `
  instances: 1
  storage: {size: 1Gi}
`

// troubled waits until the status names the trouble in all of these words.
func (w *world) troubled(words ...string) {
	w.t.Helper()
	c := w.becomes(90*time.Second, func(c *v1alpha1.Cluster) bool {
		for _, word := range words {
			if !strings.Contains(c.Status.PhaseReason, word) {
				return false
			}
		}
		return true
	})
	w.t.Logf("%s: %s", c.Status.Phase, c.Status.PhaseReason)
}

// startLimit is how long writes may be refused until a mysqld that was killed is back, on a machine that is busy
// with other tests.
const startLimit = 30 * time.Second

func (w *world) mysqldOfOneKilled() {
	l := w.startWriting()
	outage := l.outageSince(w.killMysqld(w.primary()), time.Minute)
	w.t.Logf("a single instance is writable %s after kill -9", outage)
	if outage > startLimit {
		w.t.Errorf("at most %s is wanted", startLimit)
	}
	w.healthy(time.Minute)
	l.stopAndLoseNothing()
}

func (w *world) podOfOneDeleted() {
	pod := w.pod(w.primary())
	l := w.startWriting()
	w.deletePod(pod.Name)
	w.replaced(pod, time.Minute)
	l.ackedAfter(time.Now(), 2*time.Minute)
	l.stopAndLoseNothing()
}

// TestTrouble: each bad input shows in the status what is wrong, and heals when
// it is corrected.
func TestTrouble(t *testing.T) {
	onlyInAll(t)
	for _, trouble := range []struct {
		name, spec string
		words      []string
		corrected  string
	}{
		{"unknownparameter", single + "  mysql: {parameters: {max_conections: \"100\"}}\n",
			[]string{"max_conections"}, single + "  mysql: {parameters: {max_connections: \"100\"}}\n"},
		{"nomysqld", single + "  imageName: " + testbed.OperatorImage + "\n",
			[]string{"holds no mysqld", "spec.imageName"}, single},
		{"nopull", single + "  imageName: example.invalid/mysql:none\n",
			[]string{"example.invalid/mysql:none", "spec.imageName"}, single},
	} {
		t.Run(trouble.name, func(t *testing.T) {
			w := newWorld(t, trouble.name)
			w.apply(trouble.spec)
			w.troubled(trouble.words...)
			w.apply(trouble.corrected)
			w.healthy(2 * time.Minute)
		})
	}
}

// TestMissingSecret: a Secret that the user named and did not create is asked for; its account is
// the application's once it is there.
func TestMissingSecret(t *testing.T) {
	onlyInAll(t)
	w := newWorld(t, "nosecret")
	w.apply(single + "  bootstrap: {initdb: {database: shop, owner: keeper, secret: {name: keeper}}}\n")
	w.troubled("Secret keeper", "create it")
	w.kubectl("-n", w.key.Namespace, "create", "secret", "generic", "keeper", "--type=kubernetes.io/basic-auth",
		"--from-literal=username=keeper", "--from-literal=password=let-me-in")
	w.healthy(2 * time.Minute)
	e, err := bed.Endpoint(w.ctx, w.key, "rw")
	if err != nil || e.User != "keeper" || e.Password != "let-me-in" || e.Database != "shop" {
		t.Errorf("the application's account is not the user's: %+v %v", e, err)
	}
	w.ask(w.open("rw"), "SELECT DATABASE() IS NULL")
}

// TestUnknownStorageClass: a StorageClass that is not there is named, and used once it is.
func TestUnknownStorageClass(t *testing.T) {
	onlyInAll(t)
	w := newWorld(t, "noclass")
	w.apply("  instances: 1\n  storage: {size: 1Gi, storageClass: nowhere}\n")
	w.troubled("nowhere", "StorageClass")
	w.kubectl("apply", "-f", w.file(`
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: nowhere}
provisioner: `+w.provisioner()+`
volumeBindingMode: WaitForFirstConsumer
`))
	t.Cleanup(func() { w.kubectl("delete", "storageclass", "nowhere") })
	w.healthy(2 * time.Minute)
}

// provisioner of the default storage class.
func (w *world) provisioner() string {
	w.t.Helper()
	return strings.TrimSpace(w.kubectl("get", "storageclass", "-o", "jsonpath={.items[0].provisioner}"))
}

func (w *world) file(text string) string {
	w.t.Helper()
	name := filepath.Join(w.t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return name
}

// TestFullDisk gives an instance a volume that is too small to be initialised,
// and then room.
func TestFullDisk(t *testing.T) {
	onlyInAll(t)
	w := newWorld(t, "full")
	dir := w.smallVolume("tiny", "120m")
	w.apply("  instances: 1\n  storage: {size: 1Gi, storageClass: tiny}\n")
	w.troubled("DiskFull")
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=1g"); err != nil {
		t.Fatal(err)
	}
	w.healthy(3 * time.Minute)
}

// smallVolume has the first node offer a volume of that size, and not more, to the storage class, and tells where
// it is. It goes with the test, after the Cluster.
func (w *world) smallVolume(class, size string) (dir string) {
	w.t.Helper()
	dir = w.t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0777,size="+size); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	w.endsBeforeItsVolumes()
	node := strings.Fields(w.kubectl("get", "nodes", "-o", "name"))[0]
	w.kubectl("apply", "-f", w.file(fmt.Sprintf(volumeOfClass, class, dir, strings.TrimPrefix(node, "node/"))))
	w.t.Cleanup(func() { w.kubectl("delete", "storageclass,persistentvolume", class, "--wait=false") })
	return dir
}

const volumeOfClass = `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: %[1]s}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s}
spec:
  storageClassName: %[1]s
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  hostPath: {path: %[2]s}
  nodeAffinity:
    required:
      nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%[3]s]}]}]
`
