package pki

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"slices"
	"testing"
	"time"
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
	between := signedBy(t, root, nil, pkix.Name{CommonName: "between"}, root.cert.NotAfter)
	cert, keyPEM := between.Cert, between.Key
	_, err := ParseCA(Bundle{CA: cert, Cert: cert, Key: keyPEM})
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

// TestAnAuthorityEndsWithWhatVerifiesIt holds when that is: ca.crt may hold a former certificate of the same
// authority, or a root above it, which ends before the one in tls.crt. Go takes each for a root, mysqld does not.
func TestAnAuthorityEndsWithWhatVerifiesIt(t *testing.T) {
	former, year := parsed(t, bundleOf(t, "db")), 365*24*time.Hour
	longer := signedBy(t, former, former, former.cert.Subject, former.cert.NotAfter.Add(year))
	between := signedBy(t, former, nil, pkix.Name{CommonName: "between"}, former.cert.NotAfter.Add(year))
	ends := former.cert.NotAfter
	for what, x := range map[string]struct {
		b           Bundle
		trust       []byte
		ends, holds time.Time
	}{
		"the former one":          {longer, former.trust, ends, ends},
		"both":                    {longer, slices.Concat(former.trust, longer.Cert), ends.Add(year), ends.Add(year)},
		"a root that ends before": {between, slices.Concat(between.Cert, former.trust), ends, ends.Add(year)},
	} {
		x.b.CA = x.trust
		ca := parsed(t, x.b)
		if !ca.Ends().Equal(x.ends) || ca.EndsInTrust() != x.ends.Before(ends.Add(year)) ||
			ca.HasEnded(x.holds.Add(-time.Second)) || !ca.HasEnded(x.holds) || !ca.EndsSoon(x.ends.Add(-time.Hour)) {
			t.Errorf("ca.crt holds %s: it ends at %s", what, ca.Ends())
		}
	}
}

// signedBy is an authority whose certificate is signed by another one, or by itself with the same key as before.
func signedBy(t *testing.T, by, same *CA, subject pkix.Name, until time.Time) Bundle {
	t.Helper()
	template := *by.cert
	template.SerialNumber, template.Subject, template.RawSubject = big.NewInt(7), subject, nil
	template.NotAfter, template.MaxPathLen, template.MaxPathLenZero = until, -1, false
	by.cert.MaxPathLen, by.cert.MaxPathLenZero = -1, false
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer := crypto.Signer(key)
	if same != nil {
		signer = same.key
	}
	cert, keyPEM, err := sign(&template, by.cert, signer, by.key)
	if err != nil {
		t.Fatal(err)
	}
	return Bundle{CA: cert, Cert: cert, Key: keyPEM}
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
