package operator

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1 "k8s.io/api/core/v1"

	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/pki"
)

// manager is a listener in the place of an instance's manager: it shakes hands, and
// says nothing.
func manager(t *testing.T, ca *pki.CA, trusts *pki.CA, made time.Time) string {
	t.Helper()
	bundle, err := ca.Issue(pki.InstanceLeaf("c-1", "ns", "c-1"), made)
	must(t, err)
	cert, err := bundle.TLS()
	must(t, err)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusts.Pool(), NextProtos: []string{"h2"}})
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.(*tls.Conn).HandshakeContext(t.Context())
			_ = conn.Close()
		}
	}()
	return l.Addr().String()
}

// A word of these tells which way to go: the network, the certificates, or the Pod.
func TestWhyAManagerIsNotReachedIsToldInWordsThatStay(t *testing.T) {
	ours, theirs := anAuthority(t), anAuthority(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, closed.Close())
	for _, c := range []struct{ why, address string }{
		{"connection refused", closed.Addr().String()},
		{"x509: certificate signed by unknown authority", manager(t, theirs, ours, time.Now())},
		{"x509: its certificate has expired or is not yet valid",
			manager(t, ours, ours, time.Now().Add(-400*24*time.Hour))},
		{"it refuses the operator's certificate: tls: ", manager(t, ours, theirs, time.Now())},
	} {
		conf, err := ours.OperatorTLS(time.Now())
		must(t, err)
		client := control.NewClient(c.address, conf)
		got := whyUnheard(client.Watch(t.Context(), func(control.Snapshot) {}))
		client.Close()
		// The kernel may drop what a peer said that ended the connection before it had read all.
		dropped := strings.HasPrefix(c.why, "it refuses") && got == "the connection was closed"
		if !strings.HasPrefix(got, c.why) && !dropped || strings.Contains(got, "127.0.0.1") {
			t.Errorf("it says %q, and not %q", got, c.why)
		}
	}
	for why, err := range map[string]error{
		"the connection was closed": &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE},
		"timeout":                   &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded},
		"NotAllowed: who asks is no operator": &control.Refusal{Reason: "NotAllowed",
			Message: "who asks is no operator"},
		"GET it/status: 403 Forbidden: it -> it": fmt.Errorf("GET https://10.0.0.1:8080/status: 403 Forbidden: " +
			"10.0.0.2:4711 -> [fd00::1]:8080"),
	} {
		if got := whyUnheard(err); got != why {
			t.Errorf("it says %q, and not %q", got, why)
		}
	}
	if long := whyUnheard(errors.New(strings.Repeat("x", 1000))); len(long) > unheardLimit {
		t.Errorf("it has %d bytes", len(long))
	}
}

// A status that says another word each second would be written each second.
func TestTheReasonWhyAManagerIsNotReachedIsNoNewsWhereTwoAlternate(t *testing.T) {
	st := &stream{}
	for i, step := range []struct {
		why  string
		news bool
		told string
	}{
		{"refused", true, "refused"}, {"refused", false, "refused"}, {"no route", false, "refused"},
		{"refused", false, "refused"}, {"no route", false, "refused"}, {"no route", true, "no route"},
		{"no route", false, "no route"},
	} {
		if news := st.lose(errors.New(step.why)); news != step.news || st.heard().unheard != step.told {
			t.Errorf("%d: %s: news %t, told is %q", i, step.why, news, st.heard().unheard)
		}
	}
	st.hear(snapshot("a", time.Second, time.Second), time.Now())
	if why := st.heard().unheard; why != "" {
		t.Errorf("it is heard, and said not to be: %s", why)
	}
}

func TestWhyAManagerIsNotReachedIsToldOfTheInstanceAndOfTheCluster(t *testing.T) {
	c := aCluster()
	c.Spec.Instances, c.Status.InstanceNames, c.Status.Promotion.Size = 1, []string{"c-1"}, 1
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	api := newAPI(t, node, c, aPod("c-1", "first", "n1"), bound(t, "c-1"))
	r := newTestReconciler(t, api, api)
	r.says("c-1", core.Report{Boot: "a"})
	r.streams.stream("ns", "c-1").lose(errors.New("no route to host"))
	o, plan, err := r.decide(t.Context(), c, nil)
	must(t, err)
	if want := "its manager cannot be reached (no route to host)"; !strings.Contains(plan.Status.Reason, want) {
		t.Errorf("the Cluster says %s", plan.Status.Reason)
	}
	got := instanceStatus(&o.Instances[0], o.Cluster.Topology, plan.Status)
	if got.State != "Unknown" || got.Message != "its manager cannot be reached (no route to host)" {
		t.Errorf("the instance is %s: %s", got.State, got.Message)
	}
	o.Instances[0].Pod = core.Known(core.Pod{Exists: true, NeverStarted: true}, o.Now, o.Now)
	if got = instanceStatus(&o.Instances[0], o.Cluster.Topology, plan.Status); got.Message != "" {
		t.Errorf("it has not started yet, and it says %s", got.Message)
	}
}
