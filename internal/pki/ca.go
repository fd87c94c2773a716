package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"time"
)

const (
	caLife   = 10 * 365 * 24 * time.Hour
	leafLife = 365 * 24 * time.Hour
	// OperatorLife is how long a certificate of the operator's is good. It commands all instances, and exists in
	// memory only, so that a new one costs nothing.
	OperatorLife = 48 * time.Hour
	// backdated is how far a clock may be ahead that makes an authority: whose clock is right goes by
	// what it signs at once. Nobody had its key before, so that nothing of before is trusted by it.
	backdated = 10 * 365 * 24 * time.Hour
	// maxCommonName is the upper bound of X.520; OpenSSL refuses more.
	maxCommonName = 64
)

// Bundle is a certificate with its key and the certificates it is verified
// by, all PEM: the keys ca.crt, tls.crt and tls.key of a Secret.
type Bundle struct {
	CA   []byte
	Cert []byte
	Key  []byte
}

// CA signs the leaves of one cluster.
type CA struct {
	cert *x509.Certificate
	key  crypto.Signer
	// trust is what its leaves are delivered with: its own certificate, and
	// during a rotation the former one's too.
	trust []byte
	// lost are of those authorities in trust whose key is lost, and what they signed is kept.
	lost []byte
	// ends is when that stops verifying its leaves for mysqld or for Go, holds for Go alone.
	ends, holds time.Time
}

// NewCA makes a certificate authority for a cluster. It is good for ten years from now on, and as long
// before, because this clock may be ahead.
func NewCA(cluster string, now time.Time) (Bundle, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Bundle{}, fmt.Errorf("making the key of the certificate authority of %s: %w", cluster, err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: commonName(cluster + " CA"), Organization: []string{"cnmsql"}},
		NotBefore:             now.Add(-backdated),
		NotAfter:              now.Add(caLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	cert, keyPEM, err := sign(template, template, key, key)
	if err != nil {
		return Bundle{}, fmt.Errorf("signing the certificate authority of %s: %w", cluster, err)
	}
	return Bundle{CA: cert, Cert: cert, Key: keyPEM}, nil
}

// ParseCA reads a certificate authority. A Bundle without CA trusts Cert alone. So does the
// authority that is returned beside a *TrustError: it verifies what it signed, and whoever has it
// can reach the instances; but what Bundle.CA was is lost, so that nothing may be made by it that
// others go by.
func ParseCA(b Bundle) (*CA, error) {
	cert, key, err := parsePair(b)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	if !cert.IsCA {
		return nil, errors.New("certificate authority: the certificate in tls.crt may not sign others (CA:FALSE)")
	}
	trust := b.CA
	if len(trust) == 0 {
		trust = b.Cert
	}
	ca := &CA{cert: cert, key: key, trust: trust, ends: cert.NotAfter, holds: cert.NotAfter}
	certs, err := checkTrust(trust, cert)
	if err != nil {
		ca.trust = b.Cert
		return ca, &TrustError{err}
	}
	ca.ends, ca.holds = trustedUntil(cert, certs)
	return ca, nil
}

// Trust returns the PEM by which leaves of this authority are verified. It may hold former
// authorities, too.
func (ca *CA) Trust() []byte { return ca.trust }

// Ends is when TLS within the cluster ends at the latest: with the authority's certificate, or with those that
// are trusted, in which a former one of it or its root may end before.
func (ca *CA) Ends() time.Time { return ca.ends }

// EndsInTrust reports whether what ca.crt holds ends before the certificate in tls.crt does.
func (ca *CA) EndsInTrust() bool { return ca.ends.Before(ca.cert.NotAfter) }

// HasEnded reports whether the authority is over at that moment: it can issue nothing that anybody
// would trust.
func (ca *CA) HasEnded(now time.Time) bool { return !now.Before(ca.holds) }

// EndsSoon reports whether it is time to replace the authority. By then its leaves live shorter
// than they should.
func (ca *CA) EndsSoon(now time.Time) bool {
	life := ca.cert.NotAfter.Sub(ca.cert.NotBefore)
	return now.After(ca.ends.Add(-min(leafLife, life/3)))
}

// Pool is Trust as a pool.
func (ca *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca.trust)
	return pool
}

func commonName(s string) string {
	if len(s) > maxCommonName {
		return s[:maxCommonName]
	}
	return s
}
