package pki

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// TrustError says what is wrong with the ca.crt of an authority whose certificate and key are
// sound. It would be given to every instance, none of which could verify another then.
type TrustError struct{ why error }

func (e *TrustError) Error() string { return "certificate authority: reading ca.crt: " + e.why.Error() }

// checkTrust refuses what is not a list of certificates, and one by which nothing is verified that
// the authority signs. Text beside the certificates is allowed, as TLS libraries allow it.
func checkTrust(trust []byte, authority *x509.Certificate) error {
	begun, isIn := bytes.Count(trust, []byte("-----BEGIN")), false
	for block, rest := pem.Decode(trust); block != nil; block, rest = pem.Decode(rest) {
		begun--
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("it holds a PEM block %s; only certificates belong there", block.Type)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return fmt.Errorf("it holds a certificate that cannot be read: %w", err)
		}
		isIn = isIn || verifiesTheSame(cert, authority)
	}
	switch {
	case begun != 0:
		return errors.New("it holds a PEM block that cannot be read: it is cut off, or changed")
	case !isIn:
		return errors.New("it lacks the certificate in tls.crt, so that nothing which that signs could be verified")
	}
	return nil
}

// verifiesTheSame reports whether a verifies what b signs. a may be the same authority, signed
// anew.
func verifiesTheSame(a, b *x509.Certificate) bool {
	key, comparable := a.PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	return a.IsCA && bytes.Equal(a.RawSubject, b.RawSubject) && comparable && key.Equal(b.PublicKey)
}
