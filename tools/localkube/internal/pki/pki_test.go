package pki

import (
	"crypto/x509"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
)

func TestServingCertificateIsSignedForItsAddress(t *testing.T) {
	a := mustOpen(t, t.TempDir())
	if err := a.Ensure("node1", Subject{User: "system:node:node1",
		IPs: []netip.Addr{netip.MustParseAddr("10.128.0.11")}}); err != nil {
		t.Fatal(err)
	}
	der, err := readPEM(a.CertFile("node1"))
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: "10.128.0.11"}); err != nil {
		t.Error(err)
	}
}

func TestOpenAgainKeepsEverything(t *testing.T) {
	dir := t.TempDir()
	a := mustOpen(t, dir)
	a.Ensure("admin", Subject{User: "admin"})
	a.EnsureSigningKey("sa")
	before := contents(t, dir)
	b := mustOpen(t, dir)
	b.Ensure("admin", Subject{User: "admin"})
	b.EnsureSigningKey("sa")
	if after := contents(t, dir); after != before {
		t.Error("a second run replaced keys that are in use")
	}
}

func TestKubeconfigCarriesItsCertificates(t *testing.T) {
	a := mustOpen(t, t.TempDir())
	a.Ensure("admin", Subject{User: "admin"})
	file := filepath.Join(a.Dir, "kubeconfig")
	if err := a.WriteKubeconfig(file, "lk", "https://10.128.0.2:6443", "admin"); err != nil {
		t.Fatal(err)
	}
	var config struct {
		Users []struct {
			User struct {
				Key []byte `json:"client-key-data"`
			}
		}
	}
	data, _ := os.ReadFile(file)
	if err := json.Unmarshal(data, &config); err != nil || len(config.Users) != 1 ||
		len(config.Users[0].User.Key) == 0 {
		t.Errorf("%v in %s", err, data)
	}
}

func mustOpen(t *testing.T, dir string) *Authority {
	t.Helper()
	a, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func contents(t *testing.T, dir string) string {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	all := ""
	for _, f := range files {
		data, _ := os.ReadFile(f)
		all += f + string(data)
	}
	return all
}
