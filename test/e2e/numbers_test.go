//go:build e2e

package e2e

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/binlog"
	"cnmsql.co/internal/gtid"
)

// groupGivesNumbersAgain: the only member that is left lacks what was acknowledged and archived. A
// human has it go on, and it gives the numbers of that to other transactions. A restore from a
// backup of before has these, and not what was lost.
func (b *backedUp) groupGivesNumbersAgain() {
	b.sql("CREATE TABLE app.numbers (id INT AUTO_INCREMENT PRIMARY KEY, what VARCHAR(20))")
	b.backUp("before-forced", "")
	b.completes("before-forced")
	left := b.replica()
	common := b.archivesAll()
	b.caughtUpWith(common)
	b.fence(left, "=on")
	b.memberIs(left, "OFFLINE")
	for range 3 {
		b.sql("INSERT INTO app.numbers (what) VALUES ('lost')")
	}
	lost := b.archivesAll()
	var gone []string
	for _, name := range b.cluster().Status.InstanceNames {
		if name != left {
			gone = append(gone, name)
		}
	}
	b.kubectl(append([]string{"-n", b.key.Namespace, "delete", "pvc", "--wait=false"}, gone...)...)
	b.kubectl(append([]string{"-n", b.key.Namespace, "delete", "pod", "--force", "--grace-period=0"}, gone...)...)
	b.becomes(time.Minute, func(c *v1alpha1.Cluster) bool { return c.Status.Phase == "Blocked" })
	b.fence(left, "-")
	c := b.becomes(2*time.Minute, func(c *v1alpha1.Cluster) bool { // and the others have said that they are empty
		return len(c.Status.FencedInstances) == 0 &&
			strings.Contains(c.Status.PhaseReason, left+" holds all that any of them holds")
	})
	b.t.Log(c.Status.PhaseReason)
	stop := b.insertsAtOnce(left) // before it archives, and before it is routed to
	b.kubectl("-n", b.key.Namespace, "annotate", "cluster", b.key.Name, v1alpha1.AnnotationForceQuorum+"=true")
	c = b.becomes(4*time.Minute, func(c *v1alpha1.Cluster) bool {
		return c.Status.CurrentPrimary == left && c.Status.GroupReplication.HasQuorum
	})
	if n := len(c.Status.GroupReplication.Recoveries); n != 1 {
		b.t.Errorf("%d recoveries are noted: %+v", n, c.Status.GroupReplication)
	}
	b.healthy(4 * time.Minute)
	b.t.Logf("%d rows were inserted since it could be written to", stop())
	executed := b.archivesAll()
	if again := mustParse(executed).Intersect(mustParse(lost)); !again.Equal(mustParse(lost)) {
		b.t.Errorf("of the numbers %s only %s were given again", lost, again)
	}
	if kept := b.ask(b.open("rw"), "SELECT GROUP_CONCAT(DISTINCT what) FROM app.numbers"); kept != "kept" {
		b.t.Errorf("the table has %s", kept)
	}
	b.showsLost(mustParse(lost).Subtract(mustParse(common)))
	b.isRestored(executed, b.store.Spec())
}

// showsLost: the plugin lists these transactions of an epoch, and writes them as a binary log, which is the file.
func (b *backedUp) showsLost(gone gtid.Set) (file string) {
	b.t.Helper()
	var epoch string
	for _, f := range b.lostBranches() {
		if f[2] == strconv.FormatUint(gone.Count(), 10) && f[5] == gone.Abbreviate(4) {
			epoch = f[0]
		}
	}
	if epoch == "" {
		b.t.Fatalf("lost are the %d transactions %s, and no line has them", gone.Count(), gone)
	}
	file = filepath.Join(b.t.TempDir(), "lost.binlog")
	log, err := os.Create(file)
	if err != nil {
		b.t.Fatal(err)
	}
	cmd := exec.CommandContext(b.ctx, filepath.Join(bed.BinDir(), "kubectl-cnmsql"), "backup", "lost", b.key.Name,
		"--epoch", epoch, "--kubeconfig", bed.Kubeconfig, "-n", b.key.Namespace)
	cmd.Stdout = log
	if err := errors.Join(cmd.Run(), log.Close()); err != nil {
		b.t.Fatalf("reading what epoch %s has lost: %v", epoch, err)
	}
	if got := transactionsIn(b.t, file); !got.Equal(gone) {
		b.t.Errorf("lost is %s, and the log of epoch %s has %s", gone, epoch, got)
	}
	return file
}

// lostBranches are what the plugin lists, each as EPOCH PRIMARY TRANSACTIONS FIRST LAST GTIDS.
func (b *backedUp) lostBranches() (all [][]string) {
	b.t.Helper()
	for line := range strings.Lines(b.plugin([]string{"backup", "lost", b.key.Name})) {
		if f := strings.Fields(line); len(f) == 6 {
			all = append(all, f)
		}
	}
	return all
}

// transactionsIn are those in a binary log.
func transactionsIn(t testing.TB, file string) (all gtid.Set) {
	t.Helper()
	log, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	stream, err := binlog.NewStream(log)
	for err == nil {
		var e binlog.Event
		if e, err = stream.Next(); err == nil && e.Begins != nil {
			all = all.Union(e.Begins.ID)
		}
	}
	if !errors.Is(err, io.EOF) {
		t.Fatalf("reading %s: %v", file, err)
	}
	return all
}

// insertsAtOnce inserts rows from the moment at which an instance takes them, until it is stopped.
func (b *backedUp) insertsAtOnce(instance string) (stop func() int) {
	b.t.Helper()
	e, err := bed.InstanceEndpoint(b.ctx, b.key, instance)
	if err != nil {
		b.t.Fatal(err)
	}
	db, err := e.Open()
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = db.Close() })
	ctx, cancel := context.WithCancel(b.ctx)
	ended := make(chan int)
	go func() {
		n := 0
		for ctx.Err() == nil {
			if _, err := db.ExecContext(ctx, "INSERT INTO app.numbers (what) VALUES ('kept')"); err == nil {
				n++
				continue
			}
			<-time.After(5 * time.Millisecond)
		}
		ended <- n
	}()
	return func() int { cancel(); return <-ended }
}
