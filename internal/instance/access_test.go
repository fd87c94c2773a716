package instance

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/pki"
)

func (w *world) get(n *node, port int, path string) (int, string) {
	w.t.Helper()
	resp, err := http.Get(fmt.Sprintf("http://%s%s", net.JoinHostPort(n.opt.Listen, strconv.Itoa(port)), path))
	must(w.t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	must(w.t, err)
	return resp.StatusCode, string(text)
}

func TestProbesMetricsAndThosePermittedToCommand(t *testing.T) {
	w := newWorld(t, nil)
	one := w.start(1)
	w.awaitListening(one, one.opt.ProbePort)
	for path, want := range map[string]int{"/livez": 200, "/startupz": 200, "/readyz": 503} {
		if got, text := w.get(one, one.opt.ProbePort, path); got != want {
			t.Errorf("empty, %s says %d %s", path, got, text)
		}
	}
	w.bootstrap(one)
	if got, text := w.get(one, one.opt.ProbePort, "/readyz"); got != 200 {
		t.Errorf("the primary is not ready: %s", text)
	}
	w.await(one, "settled", func(r core.Report) bool { return r.State == core.Running && r.Reason == "" })
	_, text := w.get(one, one.opt.MetricsPort, "/metrics")
	for _, want := range []string{"cnmsql_up 1", "cnmsql_primary 1", "cnmsql_writable_epoch 1",
		"\nmysql_up 1", "\nmysql_global_status_threads_connected ",
		`mysql_global_status_commands_total{command="commit"}`,
		"\nmysql_global_variables_max_connections ", `cnmsql_state{reason="",state="Running"} 1`} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}

	cert, key := w.ca.issue(t, pki.OrgInstance, "127.0.7.9")
	leaf, err := tls.X509KeyPair([]byte(cert), []byte(key))
	must(t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(w.ca.pem))
	peer := control.NewClient(net.JoinHostPort(one.opt.Listen, strconv.Itoa(one.opt.ControlPort)),
		&tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool, Certificates: []tls.Certificate{leaf},
			ServerName: one.opt.Listen})
	defer peer.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if s, err := peer.Status(ctx); err != nil || s.Report.WritableEpoch != 1 {
		t.Errorf("a peer cannot read the status: %+v, %v", s, err)
	}
	var no *control.Refusal
	if _, err := peer.Order(ctx, control.Demote{Epoch: 2}); !errors.As(err, &no) ||
		no.Reason != "Forbidden" {
		t.Errorf("a peer's order was answered with %v", err)
	}
}

func TestACloneThatFailsIsToldAndOrderedAgain(t *testing.T) {
	w := newWorld(t, nil)
	one, two := w.start(1), w.start(2)
	w.bootstrap(one)
	w.await(two, "awaiting a clone", func(r core.Report) bool {
		return r.State == core.AwaitingClone && r.Server != nil
	})
	w.order(two, control.CloneFrom{Epoch: 1, Donor: "127.0.7.99"})
	r := w.await(two, "awaiting again", func(r core.Report) bool {
		return r.State == core.AwaitingClone && r.Clone != nil && r.Clone.Error != ""
	})
	t.Logf("it says %s", r.Clone.Error)
	w.join(two, one)
	if _, err := w.tryOrder(two, control.CloneFrom{Epoch: 1, Donor: one.opt.Listen}); err == nil {
		t.Error("an order to clone was taken by an instance that has data")
	}
}

func TestAChangedPasswordIsFollowed(t *testing.T) {
	w := newWorld(t, nil)
	one := w.start(1)
	w.bootstrap(one)
	for began := time.Now(); one.remembers().Accounts == ""; <-time.After(50 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatal("it does not look at the Secrets")
		}
	}
	before := one.remembers().Accounts
	w.write(filepath.Join(w.dir, "secrets/control/password"), "another-password")
	w.write(filepath.Join(w.dir, "secrets/app/password"), "another-app-password")
	for began := time.Now(); one.remembers().Accounts == before; <-time.After(50 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatal("it does not follow the Secrets")
		}
	}
	w.crashManager(one)
	again := w.start(1)
	w.awaitPrimary(again, 1)
	w.await(again, "running", func(r core.Report) bool { return r.State == core.Running && r.Server != nil })
}

// `echo "$NOT_SET"` into a Secret leaves the end of a line. No server may get an account from it that
// lets everybody in.
func TestASecretOfALinesEndMakesNoAccountWithoutAPassword(t *testing.T) {
	w := newWorld(t, nil)
	app := filepath.Join(w.dir, "secrets/app/password")
	w.write(app, "\n")
	one := w.start(1)
	epoch := w.grant(one.opt.Instance, core.ProofBootstrap, "", "", 0)
	w.await(one, "hindered", func(r core.Report) bool { return strings.Contains(r.Message, "no password") })
	w.write(app, "app-password\n")
	w.awaitPrimary(one, epoch)
	must(t, w.login(one, "app", "app-password", "preferred"))
	w.write(app, "\n")
	w.write(filepath.Join(w.dir, "secrets/control/password"), "\n")
	for range 3 {
		one.m.resetConnections()
		w.lookedAfterAccounts(one)
		must(t, one.m.metrics.Ping(t.Context())) // who logs in anew is let in
		if r := one.report(); r.State != core.Running || r.Server == nil || r.WritableEpoch != epoch {
			t.Fatalf("it says %s %s: %s", r.State, r.Reason, r.Message)
		}
	}
	if err := w.login(one, "app", "", "preferred"); err == nil {
		t.Error("anybody who knows the name is let in")
	}
	must(t, w.login(one, "app", "app-password", "preferred"))
}

func TestAnOrderDuringAnOutageOfTheAPIServer(t *testing.T) {
	w, one, two := newPair(t, nil)
	w.order(one, control.Demote{Epoch: 2})
	w.kube.setDown(true)
	epoch := w.grant("db-2", core.ProofManagerFenced, "db-1", "", 0)
	w.await(two, "hindered", func(r core.Report) bool { return strings.Contains(r.Message, "taking the lease") })
	if two.report().WritableEpoch != 0 {
		t.Fatal("writable without the lease")
	}
	w.kube.setDown(false)
	w.awaitPrimary(two, epoch)
}

func TestAVolumeInUseIsWaitedFor(t *testing.T) {
	w := newWorld(t, nil)
	one := w.start(1)
	w.bootstrap(one)
	second := newManager(one.opt.withDefaults())
	second.opt.ControlPort, second.opt.ProbePort, second.opt.MetricsPort = w.port+5, w.port+6, w.port+7
	second.lease = one.m.lease
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- second.run(ctx) }()
	nd := &node{opt: second.opt, m: second}
	w.await(nd, "waiting", func(r core.Report) bool {
		return r.State == core.Starting && r.Reason == "VolumeInUse" && !r.VolumeLocked
	})
	if _, err := w.tryOrder(nd, control.Demote{Epoch: 9}); err == nil {
		t.Error("a promise was given for a volume that another manager uses")
	}
	cancel()
	must(t, <-done)
	if r := one.report(); r.WritableEpoch != 1 {
		t.Errorf("the first manager was disturbed: %+v", r)
	}
}

func TestForeignDataIsNotTouched(t *testing.T) {
	w := newWorld(t, nil)
	one := w.start(1)
	w.bootstrap(one)
	w.crashManager(one)
	w.kube.edit(func(c *v1alpha1.Cluster) {
		c.UID = "another"
		c.Status = v1alpha1.ClusterStatus{}
	})
	again := w.start(1)
	w.grant("db-1", core.ProofBootstrap, "", "", 0)
	r := w.await(again, "failed", func(r core.Report) bool { return r.State == core.Failed })
	if r.Reason != "ForeignData" {
		t.Errorf("it says %s: %s", r.Reason, r.Message)
	}
}

// servedCertificate is what mysqld shows a client at a port, whether or not it then
// lets the client in.
func (w *world) servedCertificate(n *node, port int) (serial string) {
	c := driver.NewConfig()
	c.Net, c.Addr = "tcp", net.JoinHostPort(n.opt.Listen, strconv.Itoa(port))
	c.User, c.Passwd, c.Logger = "app", "app-password", &driver.NopLogger{}
	c.TLS = &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(s tls.ConnectionState) error {
		serial = s.PeerCertificates[0].SerialNumber.String()
		return nil
	}}
	connector, err := driver.NewConnector(c)
	must(w.t, err)
	if conn, err := connector.Connect(w.t.Context()); err == nil {
		_ = conn.Close()
	}
	return serial
}

func TestRotatedCertificatesAreShownOnBothInterfaces(t *testing.T) {
	w := newWorld(t, nil)
	one := w.start(1)
	w.bootstrap(one)
	ports := []int{one.opt.MySQLPort, one.opt.AdminPort}
	before := w.servedCertificate(one, ports[0])
	if admin := w.servedCertificate(one, ports[1]); before == "" || admin != before {
		t.Fatalf("the certificates are %q and %q", before, admin)
	}
	cert, key := w.ca.issue(t, pki.OrgInstance, one.opt.Listen)
	w.write(one.opt.Dirs.key(), key)
	w.write(one.opt.Dirs.cert(), cert)
	for _, port := range ports {
		for began := time.Now(); w.servedCertificate(one, port) == before; <-time.After(100 * time.Millisecond) {
			if time.Since(began) > patience {
				t.Fatalf("at port %d the former certificate is still shown", port)
			}
		}
	}
}
