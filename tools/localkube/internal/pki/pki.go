package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"
)

const lifetime = 10 * 365 * 24 * time.Hour

// Authority signs the certificates of one cluster, in one directory.
type Authority struct {
	Dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Subject is whom a certificate is for. Kubernetes reads the user from the
// common name and the groups from the organizations.
type Subject struct {
	User   string
	Groups []string
	Names  []string
	IPs    []netip.Addr
}

// CertFile is the certificate of a file name without ending.
func (a *Authority) CertFile(name string) string { return filepath.Join(a.Dir, name+".crt") }

// KeyFile is the private key of a file name without ending.
func (a *Authority) KeyFile(name string) string { return filepath.Join(a.Dir, name+".key") }

// Open loads the authority of a directory, made if there is none.
func Open(dir string) (*Authority, error) {
	a := &Authority{Dir: dir}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the certificates' directory: %w", err)
	}
	if !exists(a.CertFile("ca"), a.KeyFile("ca")) {
		if err := a.create(); err != nil {
			return nil, fmt.Errorf("making the authority in %s: %w", dir, err)
		}
	}
	if err := a.load(); err != nil {
		return nil, fmt.Errorf("loading the authority of %s: %w; if it is damaged, take the cluster down and up again",
			dir, err)
	}
	return a, nil
}

// Ensure makes the key pair called name, unless it is there.
func (a *Authority) Ensure(name string, s Subject) error {
	if exists(a.CertFile(name), a.KeyFile(name)) {
		return nil
	}
	template := newTemplate(pkix.Name{CommonName: s.User, Organization: s.Groups})
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	template.DNSNames, template.IPAddresses = s.Names, toIPs(s.IPs)
	if err := a.issue(name, template); err != nil {
		return fmt.Errorf("making the certificate %s: %w", a.CertFile(name), err)
	}
	return nil
}

// EnsureSigningKey makes the key of service account tokens: NAME.key signs,
// NAME.pub verifies.
func (a *Authority) EnsureSigningKey(name string) error {
	public := filepath.Join(a.Dir, name+".pub")
	if exists(public, a.KeyFile(name)) {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	if err := writeKey(a.KeyFile(name), key); err != nil {
		return err
	}
	return writePEM(public, "PUBLIC KEY", der)
}

func (a *Authority) create() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := newTemplate(pkix.Name{CommonName: "localkube"})
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	if err := writeKey(a.KeyFile("ca"), key); err != nil {
		return err
	}
	return writePEM(a.CertFile("ca"), "CERTIFICATE", der)
}

func (a *Authority) load() error {
	der, err := readPEM(a.CertFile("ca"))
	if err != nil {
		return err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return err
	}
	if der, err = readPEM(a.KeyFile("ca")); err != nil {
		return err
	}
	a.key, err = x509.ParseECPrivateKey(der)
	return err
}

// issue writes the certificate last: Ensure takes both files for a whole pair.
func (a *Authority) issue(name string, template *x509.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return err
	}
	if err := writeKey(a.KeyFile(name), key); err != nil {
		return err
	}
	return writePEM(a.CertFile(name), "CERTIFICATE", der)
}

// newTemplate begins an hour ago, for machines whose clock steps back at boot.
func newTemplate(subject pkix.Name) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	now := time.Now()
	return &x509.Certificate{SerialNumber: serial, Subject: subject, NotBefore: now.Add(-time.Hour),
		NotAfter: now.Add(lifetime)}
}

func toIPs(addrs []netip.Addr) []net.IP {
	var ips []net.IP
	for _, a := range addrs {
		ips = append(ips, net.IP(a.AsSlice()))
	}
	return ips
}

func exists(paths ...string) bool {
	for _, p := range paths {
		if _, err := os.Stat(p); err != nil {
			return false
		}
	}
	return true
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "EC PRIVATE KEY", der)
}

// writePEM is atomic: a file that is there is whole.
func writePEM(path, kind string, der []byte) error {
	next := path + ".new"
	if err := os.WriteFile(next, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}

func readPEM(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("%s holds no PEM block", path)
	}
	return block.Bytes, nil
}
