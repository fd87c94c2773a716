package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"testing"
)

// TestAnAuthorityWithADamagedTrustIsRefused, for what is trusted goes to every instance; and it
// still reaches those that have their certificates.
func TestAnAuthorityWithADamagedTrustIsRefused(t *testing.T) {
	good, other := bundleOf(t, "db"), bundleOf(t, "other")
	leaf, cert := issue(t, parsed(t, good), InstanceLeaf("db-1", "shop", "db-1"))
	for what, trust := range map[string][]byte{
		"garbage":                             []byte("garbage"),
		"cut off":                             good.CA[:len(good.CA)-40],
		"another authority's":                 other.CA,
		"its own and one that is cut off":     append(bytes.Clone(good.CA), other.CA[:len(other.CA)-40]...),
		"its own and what is no certificate":  append(bytes.Clone(good.CA), good.Key...),
		"a certificate that it signed itself": leaf.Cert,
		"a changed letter":                    bytes.Replace(good.CA, []byte("M"), []byte("!"), 1),
	} {
		ca, err := ParseCA(Bundle{CA: trust, Cert: good.Cert, Key: good.Key})
		if damaged := (*TrustError)(nil); !errors.As(err, &damaged) || ca == nil {
			t.Errorf("ca.crt is %s: %v", what, err)
			continue
		}
		if _, err := cert.Verify(x509.VerifyOptions{Roots: ca.Pool(), CurrentTime: now}); err != nil {
			t.Errorf("ca.crt is %s: an instance is not reached any more: %v", what, err)
		}
	}
}

func TestAnAuthorityIsTrustedBesideAFormerOne(t *testing.T) {
	good, former := bundleOf(t, "db"), bundleOf(t, "former")
	for what, trust := range map[string][]byte{
		"none":              nil,
		"its own":           good.CA,
		"a former one, too": append(bytes.Clone(former.CA), good.CA...),
		"with a comment":    append([]byte("# the authority of db\n"), good.CA...),
		"without its end":   bytes.TrimSpace(good.CA),
	} {
		ca, err := ParseCA(Bundle{CA: trust, Cert: good.Cert, Key: good.Key})
		if err != nil {
			t.Errorf("ca.crt is %s: %v", what, err)
			continue
		}
		if len(trust) > 0 && !bytes.Equal(ca.Trust(), trust) {
			t.Errorf("ca.crt is %s, and is given out as %s", what, ca.Trust())
		}
	}
}

// TestAnAuthorityNeedsTheRootAboveIt holds that ca.crt of an authority that another one has signed leads up to
// one that has signed itself, as OpenSSL wants it.
func TestAnAuthorityNeedsTheRootAboveIt(t *testing.T) {
	root := parsed(t, bundleOf(t, "root"))
	root.cert.MaxPathLen, root.cert.MaxPathLenZero = -1, false
	template := *root.cert
	template.SerialNumber, template.Subject, template.RawSubject = big.NewInt(7), pkix.Name{CommonName: "between"}, nil
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert, keyPEM, err := sign(&template, root.cert, key, root.key)
	if err != nil {
		t.Fatal(err)
	}
	_, err = ParseCA(Bundle{CA: cert, Cert: cert, Key: keyPEM})
	lacks := (*TrustError)(nil)
	wants := "append the certificate of " + root.cert.Subject.String() + " to ca.crt"
	if !errors.As(err, &lacks) || lacks.Remedy() != wants {
		t.Errorf("without its root: %v", err)
	}
	other := bundleOf(t, "other")
	if _, err = ParseCA(Bundle{CA: append(bytes.Clone(cert), other.CA...), Cert: cert, Key: keyPEM}); err == nil {
		t.Error("with another root it is taken")
	}
	if _, err = ParseCA(Bundle{CA: append(bytes.Clone(cert), root.trust...), Cert: cert, Key: keyPEM}); err != nil {
		t.Errorf("with its root: %v", err)
	}
}

func bundleOf(t *testing.T, cluster string) Bundle {
	t.Helper()
	b, err := NewCA(cluster, now)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parsed(t *testing.T, b Bundle) *CA {
	t.Helper()
	ca, err := ParseCA(b)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}
