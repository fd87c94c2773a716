package instance

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/pki"
)

// world is a cluster of real managers and real servers on loopback addresses,
// without Kubernetes: the test is the operator.
type world struct {
	t *testing.T
	site
	kube  *fakeKube
	ca    *authority
	log   *journal
	nodes map[string]*node
	// room is what is said of each volume; what it has when nil.
	room func() (free, size uint64, err error)
}

// site is where a world is.
type site struct {
	dir  string
	root string // of the MySQL image's files
	// mysqld is the command that runs mysqld.
	mysqld []string
	port   int
}

type node struct {
	opt    Options
	cancel context.CancelFunc
	m      *manager
	done   chan error
}

var nextPorts atomic.Int32

// takePorts takes ten ports from the first that it returns, until the test ends: whoever listens at an address
// of no instance has them, and no world of another run gets them. They are below those that the kernel gives to
// connections.
func takePorts(t *testing.T) int {
	t.Helper()
	const first, blocks = 23316, 940
	for range blocks {
		port := first + 10*(int(nextPorts.Add(1)-1)%blocks)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.7.250", strconv.Itoa(port)))
		if err == nil {
			t.Cleanup(func() { must(t, l.Close()) })
			return port
		}
	}
	t.Fatal("others have all ports")
	return 0
}

// patience is for what takes as long as the machine takes. What has a limit as a property
// of the product is held to that instead.
const patience = 40 * time.Second

// all reports whether `make test-all` plays, which has the machine to itself.
func all() bool { return os.Getenv("CNMSQL_ALL") != "" }

// inAll leaves a test to `make test-all`: it varies one that `make test` has.
func inAll(t *testing.T) {
	t.Helper()
	if !all() {
		t.Skip("CNMSQL_ALL=1, as `make test-all` sets it, tries this too")
	}
}

// newWorld needs the files of a MySQL image.
func newWorld(t *testing.T, edit func(*v1alpha1.Cluster)) *world {
	root := os.Getenv("CNMSQL_MYSQL_ROOTFS")
	if root == "" {
		t.Skip("set CNMSQL_MYSQL_ROOTFS to the directory that `go run ./tools/image mysql-rootfs` prints, to try " +
			"this with a real mysqld")
	}
	t.Parallel() // mysqld spends most of its time waiting
	root, err := filepath.EvalSymlinks(root)
	must(t, err)
	return makeWorld(t, root, edit)
}

// makeWorld makes a world, of which a test may have several.
func makeWorld(t *testing.T, root string, edit func(*v1alpha1.Cluster)) *world {
	dir, err := os.MkdirTemp("", "cnmsql") // t.TempDir is too long a path for a socket
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "ns", UID: "uid-1", Generation: 1}}
	c.Spec.Instances = 3
	if edit != nil {
		edit(c)
	}
	w := &world{t: t, site: site{dir: dir, root: root, port: takePorts(t)}, ca: newAuthority(t),
		log: newJournal(t), kube: &fakeKube{cluster: c, changed: make(chan struct{})}, nodes: map[string]*node{}}
	for name, keys := range map[string]map[string]string{
		"root":        {"username": "root", "password": "root-password"},
		"replication": {"username": "cnmsql_replication", "password": "replication-password"},
		"control": {"username": "cnmsql_control", "password": "control-password",
			"backup-username": "cnmsql_backup", "backup-password": "backup-password"},
		"app": {"username": "app", "password": "app-password", "dbname": "app_db"},
	} {
		for key, value := range keys {
			w.write(filepath.Join(dir, "secrets", name, key), value)
		}
	}
	w.copies()
	return w
}

func (w *world) write(file, text string) {
	must(w.t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(w.t, os.WriteFile(file, []byte(text), 0o644))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// host is the address of db-1, db-2, …
func host(instance string) string {
	return "127.0.7." + instance[strings.LastIndexByte(instance, '-')+1:]
}

// options are those of the n-th instance, but for Kubernetes and the log.
func (s site) options(n int) Options {
	name := "db-" + strconv.Itoa(n)
	dir := filepath.Join(s.dir, name)
	d := Dirs{Data: dir + "/volume/data", Meta: dir + "/volume/cnmsql", Run: dir + "/run", Tmp: dir +
		"/tmp", TLS: dir + "/tls",
		Root: s.dir + "/secrets/root", Replication: s.dir + "/secrets/replication", Control: s.dir + "/secrets/control",
		App: s.dir + "/secrets/app", Store: s.dir + "/store", Archive: s.dir + "/archive"}
	return Options{
		Namespace: "ns", Cluster: "db", Instance: name, PodUID: "pod-" + name, Node: "node-" + name,
		ServerID: uint32(100 + n), Dirs: d, MySQLPort: s.port, ControlPort: s.port + 1, ProbePort: s.port + 2,
		MetricsPort: s.port + 3, AdminPort: s.port + 4,
		GroupLocal: s.groupAddress(name), GroupAddress: s.groupAddress,
		PodIP: host(name), Listen: host(name), Peer: host, LogLevel: "debug",
		Mysqld:   s.mysqld,
		Settings: s.settings(name),
	}
}

// settings are what a mysqld needs that runs from no image. Its performance schema is small: to fill 150 MB with
// zeros takes a third of a start, and some hundred servers are started.
func (s site) settings(name string) map[string]string {
	settings := map[string]string{"user": "root", "basedir": s.root + "/usr",
		"lc_messages_dir":    s.root + "/usr/share/mysql",
		"character_sets_dir": s.root + "/usr/share/mysql/charsets", "plugin_dir": s.root + "/usr/lib/mysql/plugin",
		"bind_address": host(name), "performance_schema_max_digest_length": "128"}
	for small, size := range map[string]string{"error_size": "10", "digests_size": "100", "accounts_size": "20",
		"users_size": "20", "hosts_size": "20", "max_table_instances": "200", "max_table_handles": "200",
		"max_thread_instances": "200", "max_program_instances": "1"} {
		settings["performance_schema_"+small] = size
	}
	return settings
}

// prepare makes what the n-th instance finds in its Pod.
func (w *world) prepare(n int) *node {
	w.t.Helper()
	nd := &node{done: make(chan error, 1), opt: w.options(n)}
	d := nd.opt.Dirs
	for _, p := range []string{d.Run, d.Tmp, d.Meta} {
		must(w.t, os.MkdirAll(p, 0o755))
	}
	cert, key := w.ca.issue(w.t, pki.OrgInstance, nd.opt.Listen)
	w.write(d.TLS+"/ca.crt", w.ca.pem)
	w.write(d.TLS+"/tls.crt", cert)
	w.write(d.TLS+"/tls.key", key)
	return nd
}

// start starts the n-th instance's manager.
func (w *world) start(n int) *node {
	w.t.Helper()
	nd := w.prepare(n)
	nd.opt.Kubernetes, nd.opt.Log = &cutOff{fakeKube: w.kube}, w.log.of(nd.opt.Instance)
	nd.opt.Room = w.room
	var ctx context.Context
	ctx, nd.cancel = context.WithCancel(context.Background())
	opt := nd.opt.withDefaults()
	nd.m = newManager(opt)
	nd.m.lease = &lease{kube: w.kube, me: opt.Instance}
	go func() { nd.done <- nd.m.run(ctx) }()
	w.nodes[opt.Instance] = nd
	w.t.Cleanup(func() { w.crashManager(nd) })
	return nd
}

// crashManager ends a manager as a node's loss would: nothing is said goodbye to,
// and nothing that it started goes on.
func (w *world) crashManager(nd *node) {
	nd.cancel()
	if p := get(nd.m, func(s *state) *process { return s.mysqld.proc }); p.running() {
		_ = p.handle.Kill()
		<-p.done
	}
	select {
	case <-nd.done:
		nd.done <- nil
	case <-time.After(patience):
		w.t.Error("the manager does not end")
	}
	if p := nd.m.launcher.lastChild(); p.running() {
		_ = p.handle.Kill()
		<-p.done
		w.t.Error("the manager ended and left a mysqld running")
	}
}

func (n *node) report() core.Report {
	s, _ := n.m.snapshot(time.Now())
	return s.Report
}

// await waits until a report is as wished.
func (w *world) await(n *node, what string, ok func(core.Report) bool) core.Report {
	w.t.Helper()
	deadline := time.After(patience)
	for {
		s, changed := n.m.snapshot(time.Now())
		if ok(s.Report) {
			return s.Report
		}
		select {
		case <-changed:
		case <-time.After(20 * time.Millisecond):
		case <-deadline:
			said, err := json.Marshal(s.Report)
			must(w.t, err)
			w.t.Fatalf("%s: waited in vain until it is %s; it says %s", n.opt.Instance, what, said)
		}
	}
}

// awaitListening: the manager begins to listen while it reads its volume.
func (w *world) awaitListening(n *node, port int) {
	w.t.Helper()
	address := net.JoinHostPort(n.opt.Listen, strconv.Itoa(port))
	deadline := time.Now().Add(patience)
	for {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%s does not listen: %v", n.opt.Instance, err)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// order gives an order as the operator does, over the network.
func (w *world) order(n *node, o control.Order) core.Report {
	w.t.Helper()
	s, err := w.tryOrder(n, o)
	if err != nil {
		w.t.Fatalf("%s of %s: %v", o.Verb(), n.opt.Instance, err)
	}
	return s.Report
}

func (w *world) tryOrder(n *node, o control.Order) (control.Snapshot, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c := w.client(n)
	defer c.Close()
	return c.Order(ctx, o)
}

func (w *world) client(n *node) *control.Client {
	cert, key := w.ca.issue(w.t, pki.OrgOperator, "operator")
	leaf, err := tls.X509KeyPair([]byte(cert), []byte(key))
	must(w.t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(w.ca.pem))
	return control.NewClient(net.JoinHostPort(n.opt.Listen, strconv.Itoa(n.opt.ControlPort)),
		&tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool, Certificates: []tls.Certificate{leaf},
			ServerName: n.opt.Listen})
}

// grant promotes an instance in the next epoch.
func (w *world) grant(name string, proof core.Proof, from, required string, acks int32) int64 {
	var epoch int64
	w.kube.edit(func(c *v1alpha1.Cluster) {
		c.Status.PrimaryEpoch++
		epoch = c.Status.PrimaryEpoch
		c.Status.TargetPrimary = name
		c.Status.Promotion = &v1alpha1.PromotionStatus{Epoch: epoch, Instance: name, Proof: string(proof), From: from,
			RequiredGTID: required, RequiredAcks: acks, PodUID: "pod-" + name, Node: "node-" + name, LosslessSince: 1}
	})
	return epoch
}

// acknowledged is a primary with a table t and the one replica that has to acknowledge.
func (w *world) acknowledged() (one, two *node, db *sql.DB) {
	w.t.Helper()
	one, two = w.start(1), w.start(2)
	w.bootstrap(one)
	db = w.app(one)
	w.exec(db, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
	w.join(two, one)
	w.order(one, control.SetAcks{Epoch: w.epoch(), Acks: 1})
	return one, two, db
}

// bootstrap makes the first primary.
func (w *world) bootstrap(n *node) {
	w.t.Helper()
	epoch := w.grant(n.opt.Instance, core.ProofBootstrap, "", "", 0)
	w.awaitPrimary(n, epoch)
}

func (w *world) awaitPrimary(n *node, epoch int64) {
	w.t.Helper()
	w.await(n, fmt.Sprintf("writable in epoch %d", epoch), func(r core.Report) bool { return r.WritableEpoch == epoch })
	until(w.t, n.opt.Instance+" publishes itself", func() bool {
		return w.kube.get().Status.CurrentPrimary == n.opt.Instance
	})
	w.kube.edit(func(c *v1alpha1.Cluster) {
		if c.Status.EstablishedAt == nil {
			now := metav1.NowMicro()
			c.Status.EstablishedAt = &now
		}
	})
}

// until waits for something that no report tells.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("in vain: " + what)
		}
	}
}

// newPair is a new world with a primary and a replica that follows it.
func newPair(t *testing.T, edit func(*v1alpha1.Cluster)) (w *world, one, two *node) {
	t.Helper()
	w = newWorld(t, edit)
	one, two = w.start(1), w.start(2)
	w.bootstrap(one)
	w.join(two, one)
	return w, one, two
}

// join has an empty instance clone from another and follow the primary.
func (w *world) join(n, donor *node) {
	w.t.Helper()
	w.await(n, "awaiting a clone", func(r core.Report) bool { return r.State == core.AwaitingClone && r.Server != nil })
	w.order(n, control.CloneFrom{Epoch: w.epoch(), Donor: donor.opt.Listen})
	w.await(n, "populated", func(r core.Report) bool { return r.Data == core.DataPopulated })
	w.awaitFollowing(n)
}

func (w *world) awaitFollowing(n *node) {
	w.t.Helper()
	want := host(w.kube.get().Status.CurrentPrimary)
	w.await(n, "following", func(r core.Report) bool {
		return r.Server != nil && r.Server.Replication != nil && r.Server.Replication.IORunning &&
			r.Server.Replication.SQLRunning && r.Server.Replication.SourceHost == want && !r.Server.Offline
	})
}

func (w *world) epoch() int64 { return w.kube.get().Status.PrimaryEpoch }

// journal is what all managers of a test log, in order. It is shown when the test has
// failed, after the reason; what is verbose shows it at once.
type journal struct {
	t     *testing.T
	mu    sync.Mutex
	lines []string
}

// shownLines is so many that an output with the tails of several tests can be read.
const shownLines = 150

func newJournal(t *testing.T) *journal {
	j := &journal{t: t}
	t.Cleanup(func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		if t.Failed() {
			t.Logf("the last of %d lines:\n%s", len(j.lines),
				strings.Join(j.lines[max(0, len(j.lines)-shownLines):], "\n"))
		}
	})
	return j
}

// of is the log of one manager.
func (j *journal) of(name string) io.Writer { return &testLog{journal: j, name: name} }

type testLog struct {
	*journal
	name string
}

func (l *testLog) Write(p []byte) (int, error) {
	line := fmt.Sprintf("%s %s", l.name, bytes.TrimSpace(p))
	if testing.Verbose() {
		defer func() { _ = recover() }() // the test may have ended
		l.t.Log(line)
		return len(p), nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	return len(p), nil
}

// proc is the node's mysqld.
func (n *node) proc() *process { return get(n.m, func(s *state) *process { return s.mysqld.proc }) }

// remembers reads what the node's manager keeps on its volume.
func (n *node) remembers() volumeRecord {
	if m := get(n.m, func(*state) *recordFile { return n.m.record }); m != nil {
		return m.get()
	}
	return volumeRecord{}
}
