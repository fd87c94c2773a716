package pki

import (
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// Parse reads the first certificate of a PEM. It is an error when the first block is no
// certificate.
func Parse(certPEM []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(certPEM)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("it holds no PEM block CERTIFICATE")
	}
	return x509.ParseCertificate(block.Bytes)
}

// parsePair reads a certificate and its key, and checks that they belong
// together.
func parsePair(b Bundle) (*x509.Certificate, crypto.Signer, error) {
	pair, err := tls.X509KeyPair(b.Cert, b.Key)
	if err != nil {
		return nil, nil, fmt.Errorf("reading tls.crt and tls.key: %w", err)
	}
	key, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, nil, errors.New("reading tls.key: it cannot sign")
	}
	return pair.Leaf, key, nil
}

// sign returns the certificate and the key (PKCS#8, which every OpenSSL that
// mysqld is linked with reads) as PEM.
func sign(template, parent *x509.Certificate, key, parentKey crypto.Signer) (certPEM, keyPEM []byte, err error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	certPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	return certPEM, keyPEM, nil
}
