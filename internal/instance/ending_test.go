package instance

import (
	"io"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
)

// Whoever has waited for mysqld's end decides by all that follows from it: when it ended
// tells how long its log may wait for a successor to be cut by.
func TestTheEndOfMysqldIsKnownAsAWhole(t *testing.T) {
	dir := t.TempDir()
	m := managerIn(dir, io.Discard)
	must(t, m.tryVolume(t.Context()))
	m.setCluster(&v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "db", UID: "u-1"}})
	m.launcher.setServer(binary{command: []string{"/bin/sh", "-c", "exec sleep 60"}})
	m.inherited = true // it is no mysqld, and not asked for its version
	m.findServer(t.Context())
	for range 100 {
		long := time.Now().Add(-time.Hour)
		m.update(func(s *state) { s.mysqld.downSince, s.mysqld.ended = long, false })
		must(t, m.launch())
		p := get(m, func(s *state) *process { return s.mysqld.proc })
		must(t, p.kill(t.Context()))
		if f := m.facts(); f.Mysqld.Up || !f.Mysqld.Ended || f.Now.Sub(f.Mysqld.DownSince) > time.Minute {
			t.Fatalf("it has ended, and this is known: %+v", f.Mysqld)
		}
	}
}

// managerIn is one that has its data, what it remembers and what it runs with below a directory, and
// has done nothing yet.
func managerIn(dir string, log io.Writer) *manager {
	m := newManager(Options{Namespace: "ns", Cluster: "db", Instance: "db-1", Log: log,
		Dirs: Dirs{Data: dir + "/data", Meta: dir + "/meta", Run: dir}}.withDefaults())
	m.lease = &lease{me: "db-1"}
	return m
}
