//go:build e2e

package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
)

const (
	// jobMemory is the limit of the Job, as docs/backups.md says that it needs.
	jobMemory = 256 << 20
	// jobWrites is what a Job may write to disks that is not told from nothing.
	jobWrites = 1 << 20
)

// TestLargeBackup backs up 5 GiB of data that cannot be compressed, or CNMSQL_BACKUP_SIZE (a quantity of Kubernetes'),
// through a Job whose memory is limited to 256 MiB: it does with that, and writes nothing to a disk. What is
// restored has the same rows.
func TestLargeBackup(t *testing.T) {
	onlyInAll(t)
	size, err := resource.ParseQuantity(cmp.Or(os.Getenv("CNMSQL_BACKUP_SIZE"), "5Gi"))
	if err != nil {
		t.Fatal("CNMSQL_BACKUP_SIZE: ", err)
	}
	w, elsewhere := newWorld(t, "large"), newWorld(t, "large-store")
	store, err := bed.StartObjectStore(w.ctx, elsewhere.key.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	b := &backedUp{w, store}
	b.manifest(store.Credentials(w.key.Namespace))
	b.apply(single + "  backup: {objectStore: " + store.Spec() + ", jobTemplate: {resources: {limits: {memory: \"" +
		strconv.Itoa(jobMemory) + "\"}}}}\n")
	b.healthy(2 * time.Minute)
	b.fillsTable(size.Value())

	b.backUp("large", "")
	job := &watchedJob{b: b, backup: "large", pods: map[types.UID]bool{}}
	s := b.awaits("large", 20*time.Minute, func(s *v1alpha1.BackupStatus) bool {
		job.look()
		return s.Phase == v1alpha1.BackupCompleted || s.Phase == v1alpha1.BackupFailed
	})
	if s.Phase != v1alpha1.BackupCompleted {
		t.Fatalf("%+v", s)
	}
	took := s.StoppedAt.Sub(s.StartedAt.Time)
	t.Logf("%d MiB, %d MiB stored, in %s: %.0f MiB a second", s.Size>>20, s.StoredSize>>20, took,
		float64(s.Size>>20)/max(took.Seconds(), 1))
	if s.Size < size.Value() || s.StoredSize < size.Value()/10*9 {
		t.Errorf("the backup has %d bytes, of which %d are stored; %d random ones were written", s.Size, s.StoredSize,
			size.Value())
	}
	job.didWithItsLimit()
	b.restoresAll(store.Spec())
}

// restoresAll holds the tables of a Cluster that is made of the backup against those of the source.
func (b *backedUp) restoresAll(objectStore string) {
	b.t.Helper()
	wanted, begun := b.checksums(b.open("rw")), time.Now()
	in := b.restored("restored", objectStore, ", recoveryTarget: {targetImmediate: true}")
	took := time.Since(begun)
	if is := b.checksums(in.open("rw")); !maps.Equal(is, wanted) || len(wanted) == 0 {
		b.t.Errorf("restored are %v, and the source has %v", is, wanted)
	}
	b.t.Logf("healthy on the backup %s after the Cluster was asked for", took.Round(time.Second))
}

// fillsTable has the primary write so many random bytes into a table. They stand in no binary log: there is no
// replica, and the disk has to have room for the backup beside them.
func (b *backedUp) fillsTable(size int64) {
	b.t.Helper()
	const row, rows = 1000, 1 << 17
	begun, primary := time.Now(), b.primary()
	b.sql("CREATE TABLE app.large (id BIGINT AUTO_INCREMENT PRIMARY KEY, v VARBINARY(1000) NOT NULL)")
	for written := int64(0); written < size; written += row * rows {
		b.asRoot(primary, fmt.Sprintf("SET SESSION sql_log_bin = 0; SET SESSION cte_max_recursion_depth = %[1]d; "+
			"INSERT INTO app.large (v) WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n "+
			"WHERE i < %[1]d) SELECT RANDOM_BYTES(%[2]d) FROM n", rows, row))
	}
	b.t.Logf("filled with %d MiB in %s", size>>20, time.Since(begun).Round(time.Second))
}

// watchedJob is what was seen of the Pods of a Backup's Job: processes and control groups of this machine.
type watchedJob struct {
	b      *backedUp
	backup string

	pods map[types.UID]bool
	last corev1.Pod
	pid  int
	// group is the control group that limits its memory.
	group string
	// resident is the most memory that the process had at a time, and written what it wrote to disks.
	resident, written int64
	// charged is the most that was charged to the control group, of limit: buffers of sockets and of files, too.
	charged, limit int64
}

// look is called while the Job may run. What has ended since the last look keeps what was seen of it then.
func (j *watchedJob) look() {
	j.b.t.Helper()
	var pods corev1.PodList
	if err := bed.Client.List(j.b.ctx, &pods, client.InNamespace(j.b.key.Namespace),
		client.MatchingLabels{v1alpha1.LabelBackup: j.backup}); err != nil {
		j.b.t.Fatal(err)
	}
	for _, p := range pods.Items {
		if !j.pods[p.UID] && p.Status.Phase == corev1.PodRunning {
			j.begins(p)
		}
	}
	if j.pid == 0 {
		return
	}
	if kib, found := fieldOf(j.pid, "status", "VmHWM:"); found {
		j.resident = max(j.resident, kib<<10)
	}
	if bytes, found := fieldOf(j.pid, "io", "write_bytes:"); found {
		j.written = max(j.written, bytes)
	}
	j.charged = max(j.charged, j.counts("memory.max_usage_in_bytes", "memory.peak"))
}

// begins notes a Pod that runs for the first time. Its process may not have begun, or have ended: then it is
// looked for again.
func (j *watchedJob) begins(p corev1.Pod) {
	pid, err := bed.PID(j.b.ctx, types.NamespacedName{Namespace: p.Namespace, Name: p.Name}, p.Name, "cnmsql")
	if err != nil {
		return
	}
	j.pods[p.UID], j.last, j.pid, j.group = true, p, pid, j.b.memoryGroup(pid)
	j.limit = j.counts("memory.limit_in_bytes", "memory.max")
}

// counts reads a number of the control group, by its name in either version; 0 where there is none.
func (j *watchedJob) counts(names ...string) int64 {
	for _, name := range names {
		text, _ := os.ReadFile(filepath.Join(j.group, name))
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
			return n
		}
	}
	return 0
}

// fieldOf reads a number of a file of a process. It is not found once the process has ended.
func fieldOf(pid int, file, field string) (n int64, found bool) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == field {
			n, err := strconv.ParseInt(words[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// didWithItsLimit fails unless the limit was one, the process stayed below it, was begun once, and had no disk.
func (j *watchedJob) didWithItsLimit() {
	t := j.b.t
	t.Helper()
	t.Logf("the process had %d MiB at most, its control group was charged with %d MiB of %d MiB, and %d bytes were "+
		"written to disks", j.resident>>20, j.charged>>20, j.limit>>20, j.written)
	if j.limit != jobMemory {
		t.Errorf("the limit is %d bytes, and not %d", j.limit, jobMemory)
	}
	if j.resident == 0 || j.resident >= jobMemory {
		t.Errorf("the process had %d bytes; less than %d are wanted, and some", j.resident, jobMemory)
	}
	if len(j.pods) != 1 {
		t.Errorf("the backup took %d Pods, and not one", len(j.pods))
	}
	if j.written > jobWrites {
		t.Errorf("the process wrote %d bytes to disks", j.written)
	}
	for _, v := range j.last.Spec.Volumes {
		if v.EmptyDir != nil || v.HostPath != nil || v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
			t.Errorf("the Job has the volume %s to write to", v.Name)
		}
	}
}
