package pki

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"
)

// TrustError says what is wrong with the ca.crt of an authority whose certificate and key are
// sound. It would be given to every instance, none of which could verify another then.
type TrustError struct{ why error }

func (e *TrustError) Error() string { return "certificate authority: reading ca.crt: " + e.why.Error() }

// Remedy is what a human does about it.
func (e *TrustError) Remedy() string {
	if lacks := (*rootless)(nil); errors.As(e.why, &lacks) {
		return "append the certificate of " + lacks.issuer + " to ca.crt"
	}
	return "restore it, make ca.crt the same as tls.crt"
}

// rootless says that nothing in ca.crt ends the chain of an authority that another one has signed. Go's
// TLS takes each certificate there for a root; mysqld and its clients, by OpenSSL, only one that signed itself.
type rootless struct{ issuer string }

func (e *rootless) Error() string {
	return "the authority is signed by " + e.issuer + ", of which it holds no certificate, so that mysqld would " +
		"verify nothing: OpenSSL needs the chain up to one that has signed itself"
}

// checkTrust reads what is trusted. It refuses what is not a list of certificates, and one by which nothing is
// verified that the authority signs. Text beside the certificates is allowed, as TLS libraries allow it.
func checkTrust(trust []byte, authority *x509.Certificate) (certs []*x509.Certificate, err error) {
	begun, isIn := bytes.Count(trust, []byte("-----BEGIN")), false
	for block, rest := pem.Decode(trust); block != nil; block, rest = pem.Decode(rest) {
		begun--
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("it holds a PEM block %s; only certificates belong there", block.Type)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("it holds a certificate that cannot be read: %w", err)
		}
		isIn, certs = isIn || verifiesTheSame(cert, authority), append(certs, cert)
	}
	switch {
	case begun != 0:
		return nil, errors.New("it holds a PEM block that cannot be read: it is cut off, or changed")
	case !isIn:
		return nil, errors.New("it lacks the certificate in tls.crt, so that nothing which that signs could be " +
			"verified")
	}
	return certs, checkRoot(authority, certs)
}

// checkRoot follows an authority to one that has signed itself.
func checkRoot(authority *x509.Certificate, certs []*x509.Certificate) error {
	for at, depth := authority, 0; !isRoot(at); depth++ {
		n := slices.IndexFunc(certs, func(c *x509.Certificate) bool { return at.CheckSignatureFrom(c) == nil })
		if n < 0 || depth > len(certs) {
			return &rootless{at.Issuer.String()}
		}
		at = certs[n]
	}
	return nil
}

func isRoot(c *x509.Certificate) bool { return bytes.Equal(c.RawIssuer, c.RawSubject) }

// trustedUntil returns when the last of those that are trusted stops verifying what the authority signs: for all, of
// whom mysqld follows the chain up to its root, and for Go, which takes each certificate for a root.
func trustedUntil(authority *x509.Certificate, certs []*x509.Certificate) (all, inGo time.Time) {
	for _, cert := range certs {
		if verifiesTheSame(cert, authority) {
			inGo = latest(inGo, cert.NotAfter)
			all = latest(all, chainEnds(cert, certs, len(certs)))
		}
	}
	return earliest(all, authority.NotAfter), earliest(inGo, authority.NotAfter)
}

// chainEnds is when the longest chain from a certificate to a root ends; zero where there is none. depth bounds those
// that go in circles.
func chainEnds(cert *x509.Certificate, certs []*x509.Certificate, depth int) (ends time.Time) {
	if isRoot(cert) || depth == 0 {
		return cert.NotAfter
	}
	for _, issuer := range certs {
		if bytes.Equal(cert.RawIssuer, issuer.RawSubject) && cert.CheckSignatureFrom(issuer) == nil {
			ends = latest(ends, earliest(cert.NotAfter, chainEnds(issuer, certs, depth-1)))
		}
	}
	return ends
}

func earliest(moments ...time.Time) time.Time { return slices.MinFunc(moments, time.Time.Compare) }

func latest(moments ...time.Time) time.Time { return slices.MaxFunc(moments, time.Time.Compare) }

// verifiesTheSame reports whether a verifies what b signs. a may be the same authority, signed
// anew.
func verifiesTheSame(a, b *x509.Certificate) bool {
	key, comparable := a.PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	return a.IsCA && bytes.Equal(a.RawSubject, b.RawSubject) && comparable && key.Equal(b.PublicKey)
}
