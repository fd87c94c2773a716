package instance

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// checkedByHand is the manager of a crashed primary of epoch 1, of which the log may end in what nobody
// acknowledged. Its mysqld takes its configuration when the test says so, and does nothing once it is launched.
func checkedByHand(t *testing.T) (m *manager, cluster *v1alpha1.Cluster, checking chan struct{}, goOn func()) {
	dir := t.TempDir()
	server, asked, answer := filepath.Join(dir, "mysqld"), filepath.Join(dir, "asked"), filepath.Join(dir, "answer")
	must(t, unix.Mkfifo(asked, 0o600))
	must(t, unix.Mkfifo(answer, 0o600))
	must(t, os.WriteFile(server, []byte("#!/bin/sh\ncase \"$*\" in *--validate-config)\n\techo > "+asked+
		"\n\tread it < "+answer+"\n\texit 0\nesac\nexec sleep 60\n"), 0o755))
	m = newManager(Options{Cluster: "db", Instance: "db-1", Log: io.Discard, Dirs: Dirs{Run: dir, Meta: dir + "/meta",
		Data: dir + "/data"}}.withDefaults())
	m.launcher.setServer(binary{command: []string{server}})
	m.lease = &lease{}
	must(t, os.MkdirAll(dir+"/data/mysql", 0o755))
	record, err := lockVolume(t.Context(), dir+"/meta")
	must(t, err)
	must(t, record.change(func(r *volumeRecord) {
		r.ClusterUID, r.Instance, r.Stage, r.WasPrimaryEpoch, r.TailEpoch = "u-1", "db-1", stagePopulated, 1, 1
	}))
	record.close()
	must(t, m.tryVolume(t.Context()))
	t.Cleanup(func() { m.endActivity(); m.record.close() })
	m.update(func(s *state) { s.mysqld.restart = 1 }) // as the operator ordered
	cluster = &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "db", UID: "u-1"}}
	quorum(cluster)
	cluster.Spec.Instances, cluster.Status.PrimaryEpoch = 3, 1
	cluster.Status.EstablishedAt, cluster.Status.CurrentPrimary = &metav1.MicroTime{Time: time.Now()}, "db-1"
	cluster.Status.Promotion = &v1alpha1.PromotionStatus{Epoch: 1, Instance: "db-1", LosslessSince: 1}
	m.setCluster(cluster)
	checking = make(chan struct{})
	go func() {
		_, _ = os.ReadFile(asked)
		close(checking)
	}()
	return m, cluster, checking, func() { must(t, os.WriteFile(answer, []byte("\n"), 0o600)) }
}

// Another is promoted while mysqld is asked whether it takes its configuration. It is not started then: its
// recovery would commit what is to be cut off.
func TestAStartThatIsOvertakenKeepsTheTail(t *testing.T) {
	m, cluster, checking, goOn := checkedByHand(t)
	over := make(chan error, 1)
	go func() { over <- m.startServer(t.Context()) }()
	<-checking
	next := cluster.DeepCopy()
	next.Status.PrimaryEpoch = 2
	next.Status.Promotion = &v1alpha1.PromotionStatus{Epoch: 2, Instance: "db-2", LosslessSince: 1,
		Proof: string(core.ProofManagerFenced), From: "db-1",
		RequiredGTID: "00000000-0000-0000-0000-000000000001:1-9"}
	m.setCluster(next)
	goOn()
	must(t, <-over)
	if r := m.record.get(); m.launcher.child != nil || r.TailEpoch != 1 || m.st.mysqld.problem != nil {
		t.Errorf("it was launched: %t; its tail is of epoch %d, its problem %v", m.launcher.child != nil, r.TailEpoch,
			m.st.mysqld.problem)
	}
}

// Who goes on as primary keeps the tail until it has recovered: another may be promoted meanwhile.
func TestAStartThatIsPermittedKeepsTheTail(t *testing.T) {
	m, _, checking, goOn := checkedByHand(t)
	over := make(chan error, 1)
	go func() { over <- m.startServer(t.Context()) }()
	<-checking
	goOn()
	must(t, <-over)
	if r := m.record.get(); m.launcher.child == nil || r.TailEpoch != 1 {
		t.Errorf("it was launched: %t; its tail is of epoch %d", m.launcher.child != nil, r.TailEpoch)
	}
}
