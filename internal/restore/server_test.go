package restore

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/recovery"
)

// signed makes a certificate; it signs itself when by is nil.
func signed(t *testing.T, name string, by *tls.Certificate) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	is := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: by == nil,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	parent, signer := is, key
	if by != nil {
		parent, signer = by.Leaf, by.PrivateKey.(*ecdsa.PrivateKey)
	}
	der, err := x509.CreateCertificate(rand.Reader, is, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// greet has a client shake hands with a server.
func greet(t *testing.T, server, client *tls.Config) error {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go func() {
		if conn, err := l.Accept(); err == nil {
			_ = conn.(*tls.Conn).Handshake()
			_ = conn.Close()
		}
	}()
	conn, err := tls.Dial("tcp", l.Addr().String(), client)
	if err == nil {
		_ = conn.Close()
	}
	return err
}

// TestOnlyAServerThatTheAuthoritySignedIsCopied holds whom the certificate has to name, and that one of another
// authority is never taken.
func TestOnlyAServerThatTheAuthoritySignedIsCopied(t *testing.T) {
	ca, other := signed(t, "authority", nil), signed(t, "another", nil)
	dir := t.TempDir()
	for name, text := range map[string][]byte{recovery.FilePassword: []byte("secret\n"),
		recovery.FileAuthority: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Certificate[0]})} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		shows   *tls.Certificate
		anyName bool
		refused string
	}{
		"its name":                        {signed(t, "db.example.com", ca), false, ""},
		"another name":                    {signed(t, "MySQL_Server", ca), false, "not db.example.com"},
		"another name, which is taken":    {signed(t, "MySQL_Server", ca), true, ""},
		"another authority":               {signed(t, "db.example.com", other), false, "unknown authority"},
		"another authority, and any name": {signed(t, "db.example.com", other), true, "unknown authority"},
		"signed by itself, and any name":  {signed(t, "db.example.com", nil), true, "unknown authority"},
	} {
		t.Run(name, func(t *testing.T) {
			donor, err := Donor(dir, recovery.Server{Name: "old", Host: "db.example.com", Port: 3307,
				AnyName: tc.anyName})
			if err != nil || donor.Address != "db.example.com:3307" || donor.Password != "secret" {
				t.Fatalf("%+v: %v", donor, err)
			}
			err = greet(t, &tls.Config{Certificates: []tls.Certificate{*tc.shows}}, donor.TLS)
			if (err == nil) != (tc.refused == "") || err != nil && !strings.Contains(err.Error(), tc.refused) {
				t.Errorf("%v, and should be %q", err, tc.refused)
			}
		})
	}
}

// TestAServerOfAnotherSeriesIsNotCopied holds that the version is looked at before anything is written.
func TestAServerOfAnotherSeriesIsNotCopied(t *testing.T) {
	for version, refused := range map[string]error{"9.7.4": nil, "9.7.5": nil, "9.7.3": backup.ServerOlder,
		"8.0.45": backup.SeriesDiffers} {
		if err := backup.Fits("the external server", "9.7.4", version); !errors.Is(err, refused) {
			t.Errorf("%s: %v", version, err)
		}
	}
}
