package pki

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Organizations in certificates, by which a server tells callers apart.
const (
	OrgOperator = "cnmsql:operator"
	OrgInstance = "cnmsql:instance"
	// OrgBackup opens no route of the control API.
	OrgBackup = "cnmsql:backup"
)

// Leaf is who a certificate is for. Every leaf may be used by a server and by a
// client: an instance is both, to its peers and to its source.
type Leaf struct {
	Name         string
	Organization string
	DNSNames     []string
	IPs          []net.IP
	// life is how long it is good, if it is not leafLife.
	life time.Duration
}

func (l *Leaf) lives() time.Duration { return cmp.Or(l.life, leafLife) }

// InstanceLeaf is the certificate of an instance. It is valid under the names
// of the given Services: its own, and every one that may lead to it.
func InstanceLeaf(instance, namespace string, services ...string) Leaf {
	leaf := Leaf{
		Name:         instance,
		Organization: OrgInstance,
		DNSNames:     []string{"localhost"},
		IPs:          []net.IP{net.IPv4(127, 0, 0, 1).To4(), net.IPv6loopback},
	}
	for _, service := range services {
		leaf.DNSNames = append(leaf.DNSNames,
			service,
			service+"."+namespace,
			service+"."+namespace+".svc",
			service+"."+namespace+".svc.cluster.local")
	}
	return leaf
}

// Add has a certificate be good for more names. Who comes by an address looks for it among the addresses, and not
// among the names of DNS.
func (l *Leaf) Add(names ...string) {
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			l.IPs = append(l.IPs, ip)
		} else {
			l.DNSNames = append(l.DNSNames, name)
		}
	}
}

// BackupLeaf is the certificate by which the Job of a backup is let in by mysqld.
func BackupLeaf() Leaf {
	return Leaf{Name: "backup", Organization: OrgBackup}
}

// OperatorLeaf is the certificate by which the operator is known to instances.
func OperatorLeaf() Leaf {
	return Leaf{Name: "operator", Organization: OrgOperator, life: OperatorLife}
}

// Issue makes a certificate for a leaf. It is good for a year (OperatorLife for the operator's), and ends with its
// authority at the latest. It is good from the beginning of its authority on, and not from now: one that was made
// while this clock was ahead would be refused by all others until they are there, too. An authority
// that has ended issues none: that is an error.
func (ca *CA) Issue(leaf Leaf, now time.Time) (Bundle, error) {
	if ca.HasEnded(now) {
		return Bundle{}, fmt.Errorf("making a certificate for %s: the certificate authority ended at %s",
			leaf.Name, stamp(ca.Ends()))
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Bundle{}, fmt.Errorf("making the key of %s: %w", leaf.Name, err)
	}
	until := now.Add(leaf.lives())
	if until.After(ca.cert.NotAfter) {
		until = ca.cert.NotAfter
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: commonName(leaf.Name), Organization: []string{leaf.Organization}},
		NotBefore:             ca.cert.NotBefore,
		NotAfter:              until,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		DNSNames:              leaf.DNSNames,
		IPAddresses:           leaf.IPs,
	}
	cert, keyPEM, err := sign(template, ca.cert, key, ca.key)
	if err != nil {
		return Bundle{}, fmt.Errorf("signing the certificate of %s: %w", leaf.Name, err)
	}
	return Bundle{CA: ca.trust, Cert: cert, Key: keyPEM}, nil
}

// Keep returns what a leaf should have: what it has, if that is good. What an authority has signed whose key is lost is
// kept as long as it is good, whatever else it lacks, and delivered with what is trusted now.
func (ca *CA) Keep(b Bundle, leaf Leaf, now time.Time) (Bundle, error) {
	switch {
	case ca.Flaw(b, leaf, now) == "":
		return b, nil
	case StaysGood(b, ca.lost, now):
		return Bundle{CA: ca.trust, Cert: b.Cert, Key: b.Key}, nil
	default:
		return ca.Issue(leaf, now)
	}
}

// Flaw tells why a certificate must be issued again; "" when it is good.
func (ca *CA) Flaw(b Bundle, leaf Leaf, now time.Time) string {
	if len(b.Cert) == 0 || len(b.Key) == 0 {
		return "there is none yet"
	}
	cert, _, err := parsePair(b)
	switch {
	case err != nil:
		return err.Error()
	case cert.CheckSignatureFrom(ca.cert) != nil:
		return "it was signed by another certificate authority"
	case string(b.CA) != string(ca.trust):
		return "the certificate authorities to trust have changed"
	case cert.Subject.CommonName != commonName(leaf.Name) || !slices.Equal(cert.Subject.Organization,
		[]string{leaf.Organization}):
		return "it was issued to another subject"
	case now.Before(cert.NotBefore) && ca.cert.NotBefore.Before(cert.NotBefore):
		return "it is not good before " + stamp(cert.NotBefore) // another would be
	case now.After(cert.NotAfter.Add(-leaf.lives()/3)) && cert.NotAfter.Before(ca.cert.NotAfter):
		return "it ends at " + stamp(cert.NotAfter) // another would end later
	}
	return flawOfNames(cert, leaf)
}

// flawOfNames tells which name or address a certificate lacks, or has though it should not: what has that name by now
// may be somebody else's.
func flawOfNames(cert *x509.Certificate, leaf Leaf) string {
	for _, name := range leaf.DNSNames {
		if !slices.Contains(cert.DNSNames, name) {
			return "it lacks the name " + name
		}
	}
	for _, name := range cert.DNSNames {
		if !slices.Contains(leaf.DNSNames, name) {
			return "it has the name " + name + ", which is not its any more"
		}
	}
	for _, ip := range leaf.IPs {
		if !slices.ContainsFunc(cert.IPAddresses, ip.Equal) {
			return "it lacks the address " + ip.String()
		}
	}
	for _, ip := range cert.IPAddresses {
		if !slices.ContainsFunc(leaf.IPs, ip.Equal) {
			return "it has the address " + ip.String() + ", which is not its any more"
		}
	}
	return ""
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// TLS makes a Bundle usable by crypto/tls.
func (b Bundle) TLS() (tls.Certificate, error) { return tls.X509KeyPair(b.Cert, b.Key) }

// OperatorTLS is the client configuration by which the operator speaks to the instances of a
// cluster. Whoever uses it names the host that it expects.
func (ca *CA) OperatorTLS(now time.Time) (*tls.Config, error) {
	bundle, err := ca.Issue(OperatorLeaf(), now)
	if err != nil {
		return nil, fmt.Errorf("issue the operator's certificate: %w", err)
	}
	cert, err := bundle.TLS()
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: ca.Pool(), Certificates: []tls.Certificate{cert}}, nil
}

// ClientTLS is for whoever calls a host with the certificate in a mounted Secret: ca.crt,
// tls.crt and tls.key of a directory. least is the oldest version of TLS.
func ClientTLS(dir, host string, least uint16) (*tls.Config, error) {
	leaf, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		return nil, fmt.Errorf("loading the certificate: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("loading the cluster's CA: %w", err)
	}
	cas := x509.NewCertPool()
	if !cas.AppendCertsFromPEM(text) {
		return nil, errors.New("loading the cluster's CA: " + filepath.Join(dir, "ca.crt") + " holds no certificate")
	}
	return &tls.Config{MinVersion: least, ServerName: host, RootCAs: cas, Certificates: []tls.Certificate{leaf}}, nil
}
