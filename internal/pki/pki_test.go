package pki

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"net"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newCA(t *testing.T) *CA {
	t.Helper()
	b, err := NewCA("db", now)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := ParseCA(b)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func issue(t *testing.T, ca *CA, leaf Leaf) (Bundle, *x509.Certificate) {
	t.Helper()
	b, err := ca.Issue(leaf, now)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := Parse(b.Cert)
	if err != nil {
		t.Fatal(err)
	}
	return b, cert
}

func TestAnInstanceIsValidUnderEveryServiceName(t *testing.T) {
	ca := newCA(t)
	_, cert := issue(t, ca, InstanceLeaf("db-2", "shop", "db-2", "db-rw", "db-ro", "db-r"))
	for _, name := range []string{"db-rw", "db-ro.shop", "db-r.shop.svc", "db-2.shop.svc.cluster.local", "db-2",
		"localhost", "127.0.0.1"} {
		for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
			_, err := cert.Verify(x509.VerifyOptions{DNSName: name, Roots: ca.Pool(), CurrentTime: now,
				KeyUsages: []x509.ExtKeyUsage{usage}})
			if err != nil {
				t.Errorf("%s, usage %v: %v", name, usage, err)
			}
		}
	}
	if err := cert.VerifyHostname("db-3.shop.svc"); err == nil {
		t.Error("valid under the name of another instance")
	}
}

// TestTheOperatorsCertificateIsGoodForTwoDays holds of its end, which is all that ends what a copy of it can command.
func TestTheOperatorsCertificateIsGoodForTwoDays(t *testing.T) {
	ca := newCA(t)
	for hours, good := range map[time.Duration]bool{-24: true, 47: true, 49: false} {
		_, cert := issue(t, ca, OperatorLeaf())
		_, err := cert.Verify(x509.VerifyOptions{Roots: ca.Pool(), CurrentTime: now.Add(hours * time.Hour),
			KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		if (err == nil) != good {
			t.Errorf("%d hours after it was made: %v", hours, err)
		}
	}
}

func TestTheOperatorIsKnownByItsOrganization(t *testing.T) {
	ca := newCA(t)
	_, cert := issue(t, ca, OperatorLeaf())
	if got := cert.Subject.Organization; len(got) != 1 || got[0] != OrgOperator {
		t.Errorf("organization is %v", got)
	}
	_, err := cert.Verify(x509.VerifyOptions{Roots: ca.Pool(), CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		t.Error(err)
	}
}

func TestAnotherClustersCertificateIsNotTrusted(t *testing.T) {
	_, cert := issue(t, newCA(t), OperatorLeaf())
	if _, err := cert.Verify(x509.VerifyOptions{Roots: newCA(t).Pool(), CurrentTime: now}); err == nil {
		t.Error("verified by the authority of another cluster of the same name")
	}
}

func TestALongNameFitsIntoTheSubject(t *testing.T) {
	b, err := NewCA(strings.Repeat("a", 70), now)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := Parse(b.Cert)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(cert.Subject.CommonName); n != maxCommonName {
		t.Errorf("the common name is %d long", n)
	}
}

func TestALeafNeverOutlivesItsAuthority(t *testing.T) {
	ca := newCA(t)
	b, err := ca.Issue(OperatorLeaf(), now.Add(caLife-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	cert, err := Parse(b.Cert)
	if err != nil {
		t.Fatal(err)
	}
	if cert.NotAfter.After(ca.cert.NotAfter) {
		t.Error("the leaf ends after its authority")
	}
}

func TestFlawSaysWhyToIssueAnew(t *testing.T) {
	ca := newCA(t)
	leaf := InstanceLeaf("db-1", "shop", "db-1", "db-rw", "db-ro", "db-r")
	good, _ := issue(t, ca, leaf)
	renamed := InstanceLeaf("db-1", "shop", "db-1", "db-rw", "db-ro", "db-r")
	renamed.DNSNames = append(renamed.DNSNames, "db.example.com")
	other, _ := issue(t, ca, leaf)
	moved := InstanceLeaf("db-1", "shop", "db-1", "db-rw", "db-ro", "db-r")
	moved.Add("192.0.2.7")
	atRenamed, _ := issue(t, ca, renamed)
	atMoved, _ := issue(t, ca, moved)
	for _, c := range []struct {
		name   string
		ca     *CA
		bundle Bundle
		leaf   Leaf
		at     time.Time
		want   string
	}{
		{"fresh", ca, good, leaf, now, ""},
		{"absent", ca, Bundle{}, leaf, now, "there is none yet"},
		{"garbage", ca, Bundle{Cert: []byte("x"), Key: good.Key}, leaf, now, "reading tls.crt"},
		{"key of another", ca, Bundle{CA: good.CA, Cert: good.Cert, Key: other.Key}, leaf, now,
			"reading tls.crt and tls.key"},
		{"other authority", newCA(t), good, leaf, now, "another certificate authority"},
		{"other subject", ca, good, InstanceLeaf("db-2", "shop", "db-2", "db-rw", "db-ro", "db-r"),
			now, "another subject"},
		{"new name", ca, good, renamed, now, "it lacks the name db.example.com"},
		{"a name too many", ca, atRenamed, leaf, now, "it has the name db.example.com"},
		{"new address", ca, good, moved, now, "it lacks the address 192.0.2.7"},
		{"an address too many", ca, atMoved, leaf, now, "it has the address 192.0.2.7"},
		{"with all its names and addresses", ca, atMoved, moved, now, ""},
		{"half its life", ca, good, leaf, now.Add(leafLife / 2), ""},
		{"two thirds of its life", ca, good, leaf, now.Add(leafLife*2/3 + time.Hour), "it ends at"},
		{"clock went back", ca, good, leaf, now.Add(-48 * time.Hour), ""},
		{"not good yet", ca, begins(t, ca, leaf, now.Add(7*time.Hour)), leaf, now, "it is not good before"},
		{"no other would be", ca, good, leaf, ca.cert.NotBefore.Add(-time.Hour), ""},
	} {
		got := c.ca.Flaw(c.bundle, c.leaf, c.at)
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// begins is a certificate that begins later than its authority, as earlier releases made them.
func begins(t *testing.T, ca *CA, leaf Leaf, at time.Time) Bundle {
	t.Helper()
	made, template := issue(t, ca, leaf)
	key, err := made.TLS()
	if err != nil {
		t.Fatal(err)
	}
	signer := key.PrivateKey.(*ecdsa.PrivateKey)
	template.NotBefore = at
	cert, keyPEM, err := sign(template, ca.cert, signer, ca.key)
	if err != nil {
		t.Fatal(err)
	}
	return Bundle{CA: ca.trust, Cert: cert, Key: keyPEM}
}

// A node boots with a wrong clock, and whoever's clock is right has to go by what was made there before
// it was set.
func TestWhatAClockThatIsAheadMadeIsGoodAtOnce(t *testing.T) {
	for _, c := range []struct{ authority, leaf time.Duration }{
		{0, 8 * time.Hour}, {8 * time.Hour, 8 * time.Hour}, {8 * time.Hour, 0}, {leafLife, leafLife},
	} {
		ca, err := ParseCA(authorityAt(t, now.Add(c.authority)))
		if err != nil {
			t.Fatal(err)
		}
		leaf := InstanceLeaf("db-1", "shop", "db-1")
		made, err := ca.Issue(leaf, now.Add(c.leaf))
		if err != nil {
			t.Fatal(err)
		}
		cert, err := Parse(made.Cert)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cert.Verify(x509.VerifyOptions{Roots: ca.Pool(), CurrentTime: now}); err != nil {
			t.Errorf("made %s and %s ahead: %v", c.authority, c.leaf, err)
		}
		if flaw := ca.Flaw(made, leaf, now); flaw != "" {
			t.Errorf("made %s and %s ahead, it is made again: %s", c.authority, c.leaf, flaw)
		}
	}
}

func TestALeafIsNoAuthority(t *testing.T) {
	b, _ := issue(t, newCA(t), OperatorLeaf())
	if _, err := ParseCA(b); err == nil {
		t.Error("a leaf was taken for an authority")
	}
}

func TestInstanceAndOperatorTrustEachOther(t *testing.T) {
	ca := newCA(t)
	at := func() time.Time { return now }
	instance, _ := issue(t, ca, InstanceLeaf("db-1", "shop", "db-1", "db-rw", "db-ro", "db-r"))
	operator, _ := issue(t, ca, OperatorLeaf())
	serverConn, clientConn := net.Pipe()
	server := tls.Server(serverConn, &tls.Config{Time: at, Certificates: pair(t, instance),
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.Pool()})
	client := tls.Client(clientConn, &tls.Config{Time: at, Certificates: pair(t, operator), RootCAs: ca.Pool(),
		ServerName: "db-1.shop.svc"})
	served := make(chan error, 1)
	go func() { served <- server.Handshake() }()
	if err := client.Handshake(); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func pair(t *testing.T, b Bundle) []tls.Certificate {
	t.Helper()
	c, err := b.TLS()
	if err != nil {
		t.Fatal(err)
	}
	return []tls.Certificate{c}
}

// TestAnAuthorityThatEndsIssuesNothingThatIsNotGood: the operator asks Flaw at each look, and whatever
// has one is issued again. A certificate that ends with its authority is as good as can be.
func TestAnAuthorityThatEndsIssuesNothingThatIsNotGood(t *testing.T) {
	ca, leaf := newCA(t), InstanceLeaf("db-1", "shop", "db-1")
	for before, soon := range map[time.Duration]bool{2 * leafLife: false, 100 * 24 * time.Hour: true,
		20 * time.Minute: true, time.Second: true} {
		at := ca.Ends().Add(-before)
		made, err := ca.Issue(leaf, at)
		if err != nil {
			t.Errorf("%s before its end: %v", before, err)
			continue
		}
		for _, later := range []time.Duration{0, 5 * time.Second, before} {
			if flaw := ca.Flaw(made, leaf, at.Add(later)); flaw != "" && before <= leafLife {
				t.Errorf("%s before its end, %s later: %s", before, later, flaw)
			}
		}
		if ca.EndsSoon(at) != soon || ca.HasEnded(at) {
			t.Errorf("%s before its end: ends soon %t, has ended %t", before, ca.EndsSoon(at), ca.HasEnded(at))
		}
	}
	_, err := ca.Issue(leaf, ca.Ends())
	if !ca.HasEnded(ca.Ends()) || err == nil || !strings.Contains(err.Error(), "ended at") {
		t.Errorf("after its end it issues: %v", err)
	}
}
