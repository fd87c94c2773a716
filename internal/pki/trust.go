package pki

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
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

// checkTrust refuses what is not a list of certificates, and one by which nothing is verified that
// the authority signs. Text beside the certificates is allowed, as TLS libraries allow it.
func checkTrust(trust []byte, authority *x509.Certificate) error {
	begun, isIn := bytes.Count(trust, []byte("-----BEGIN")), false
	var certs []*x509.Certificate
	for block, rest := pem.Decode(trust); block != nil; block, rest = pem.Decode(rest) {
		begun--
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("it holds a PEM block %s; only certificates belong there", block.Type)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return fmt.Errorf("it holds a certificate that cannot be read: %w", err)
		}
		isIn, certs = isIn || verifiesTheSame(cert, authority), append(certs, cert)
	}
	switch {
	case begun != 0:
		return errors.New("it holds a PEM block that cannot be read: it is cut off, or changed")
	case !isIn:
		return errors.New("it lacks the certificate in tls.crt, so that nothing which that signs could be verified")
	}
	return checkRoot(authority, certs)
}

// checkRoot follows an authority to one that has signed itself.
func checkRoot(authority *x509.Certificate, certs []*x509.Certificate) error {
	for at, depth := authority, 0; !bytes.Equal(at.RawIssuer, at.RawSubject); depth++ {
		n := slices.IndexFunc(certs, func(c *x509.Certificate) bool { return at.CheckSignatureFrom(c) == nil })
		if n < 0 || depth > len(certs) {
			return &rootless{at.Issuer.String()}
		}
		at = certs[n]
	}
	return nil
}

// verifiesTheSame reports whether a verifies what b signs. a may be the same authority, signed
// anew.
func verifiesTheSame(a, b *x509.Certificate) bool {
	key, comparable := a.PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	return a.IsCA && bytes.Equal(a.RawSubject, b.RawSubject) && comparable && key.Equal(b.PublicKey)
}
