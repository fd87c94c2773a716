package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/layout"
	"cnmsql.co/internal/pki"
)

// word is a manager that says one thing, and cannot be ordered.
type word struct{ snap control.Snapshot }

func (w word) Snapshot(context.Context) control.Snapshot                 { return w.snap }
func (w word) Watch(context.Context, func(control.Snapshot) error) error { return nil }
func (w word) Vouch(context.Context, string, int64) error                { return nil }
func (w word) Order(context.Context, control.Order) error                { return nil }
func (w word) StartCheck(control.CheckOrder) error                       { return nil }
func (w word) CheckReport() control.CheckReport                          { return control.CheckReport{} }
func (w word) ReplaceManager(context.Context, string, io.Reader) error   { return nil }

// serveWord makes a manager of db-1, and returns how db-1's own Pod asks it.
func serveWord(t *testing.T, snap control.Snapshot) manager {
	t.Helper()
	bundle, err := pki.NewCA("db", time.Now())
	must(t, err)
	ca, err := pki.ParseCA(bundle)
	must(t, err)
	leaf, err := ca.Issue(pki.InstanceLeaf("db-1", "shop", "db-1", "db-rw", "db-ro", "db-r"), time.Now())
	must(t, err)
	dir := t.TempDir()
	for name, text := range map[string][]byte{"ca.crt": ca.Trust(), "tls.crt": leaf.Cert, "tls.key": leaf.Key} {
		must(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	pair, err := leaf.TLS()
	must(t, err)
	server := httptest.NewUnstartedServer(control.NewHandler(word{snap}))
	server.TLS = control.ServerTLS(func() (*tls.Certificate, error) {
		return &pair, nil
	}, func() (*x509.CertPool, error) { return ca.Pool(), nil })
	server.StartTLS()
	t.Cleanup(server.Close)
	return manager{address: server.Listener.Addr().String(), host: layout.InstanceHost("db-1", "shop"), tlsDir: dir}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestThePodsOwnCertificateMayReadTheStatus(t *testing.T) {
	m := serveWord(t, control.Snapshot{Taken: 5, Made: 6, Asked: 4, Report: core.Report{Instance: "db-1",
		State: core.Running, WritableEpoch: 3}})
	var out strings.Builder
	must(t, m.status(t.Context(), &out))
	var snap control.Snapshot
	must(t, json.Unmarshal([]byte(out.String()), &snap))
	if snap.Taken != 5 || snap.Report.Instance != "db-1" || snap.Report.WritableEpoch != 3 {
		t.Errorf("it printed %s", out.String())
	}
}

func TestAManagerThatDoesNotAnswerIsToldApart(t *testing.T) {
	m := serveWord(t, control.Snapshot{})
	m.address = "127.0.0.1:1"
	if err := m.status(t.Context(), &strings.Builder{}); err == nil ||
		!strings.Contains(err.Error(), "asking the manager of this Pod") {
		t.Error(err)
	}
}

func TestOutsideOfAPodItTellsHowToRunIt(t *testing.T) {
	t.Setenv(layout.EnvInstance, "")
	if _, err := thisPod(); err == nil || !strings.Contains(err.Error(), "kubectl exec POD -c mysql") {
		t.Error(err)
	}
}
