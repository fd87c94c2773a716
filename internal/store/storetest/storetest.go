// Package storetest gives tests a store of their own: a directory, a real S3 server, or one
// that speaks as Google Cloud Storage or as Azure Blob Storage. It knows how to start one, and
// nothing of what is kept in it.
package storetest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"cnmsql.co/internal/store"
)

// Bucket is the name of the bucket that S3, GCS, Azurite and Dir make, and Path what stands before every
// key in it.
const (
	Bucket = "bucket"
	Path   = "some/path"
)

// credentials of the server; a test may write others into the directory.
const (
	accessKey = "access"
	secretKey = "secret-of-the-test"
)

// Dir gives a directory for store.Open that tells of a store in a directory.
func Dir(t testing.TB) (dir string) {
	t.Helper()
	root := t.TempDir()
	must(t, os.Mkdir(filepath.Join(root, Bucket), 0o755))
	return Configure(t, store.Config{Endpoint: "file://" + root, Bucket: Bucket, Path: Path}, nil)
}

// Configure gives a directory for store.Open, with files beside the configuration.
func Configure(t testing.TB, config store.Config, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	text, err := json.Marshal(config)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, store.FileConfig), text, 0o600))
	for name, content := range files {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return dir
}

// S3 starts an S3 server with an empty bucket, which speaks TLS and is stopped when the
// test ends, and gives a directory for store.Open that tells of it. The test is skipped
// unless CNMSQL_S3_BIN is the path that `go run -C tools/objectstore . build` prints.
func S3(t testing.TB) (dir string) {
	t.Helper()
	binary := os.Getenv("CNMSQL_S3_BIN")
	if binary == "" {
		t.Skip("set CNMSQL_S3_BIN to the path that `go run -C tools/objectstore . build` prints, to try this with a " +
			"real S3 server")
	}
	home := t.TempDir()
	for _, d := range []string{"data/" + Bucket, "metadata"} {
		must(t, os.MkdirAll(filepath.Join(home, d), 0o755))
	}
	authority := certify(t, home)
	address := serve(t, "S3", authority, "/health", func(address string) *exec.Cmd {
		return exec.Command(binary, "--access", accessKey, "--secret", secretKey, "--port", address,
			"--quiet", "--keep-alive",
			"--health", "/health", "--cert", filepath.Join(home, "cert.pem"), "--key", filepath.Join(home, "key.pem"),
			"posix", "--sidecar", filepath.Join(home, "metadata"), filepath.Join(home, "data"))
	})
	return Configure(t, store.Config{Endpoint: "https://" + address, Bucket: Bucket, Path: Path},
		map[string]string{store.FileAccessKeyID: accessKey + "\n", store.FileSecretKey: secretKey + "\n",
			store.FileCA: string(authority)})
}

// serve starts a server on a port that is free, and waits until it answers. Another process
// may take the port before it does: then the next is tried.
func serve(t testing.TB, kind string, authority []byte, health string,
	command func(address string) *exec.Cmd) (address string) {
	t.Helper()
	for range 5 {
		address = freeAddress(t)
		said := &bytes.Buffer{}
		cmd := command(address)
		cmd.Stdout, cmd.Stderr = said, said
		must(t, cmd.Start())
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		stop := func() { _ = cmd.Process.Kill(); <-ended }
		if answers(t, trusting(t, authority), "https://"+address+health, ended) {
			t.Cleanup(func() {
				stop()
				if t.Failed() {
					t.Logf("the %s server on %s said:\n%s", kind, address, said)
				}
			})
			return address
		}
		stop()
		t.Logf("the %s server on %s did not start, and said:\n%s", kind, address, said)
	}
	t.Fatalf("no %s server", kind)
	return ""
}

func freeAddress(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// trusting is a client of a server with a certificate of that authority.
func trusting(t testing.TB, authority []byte) *http.Client {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		t.Fatal("no certificate")
	}
	return &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
}

// answers waits until the server does, or has ended.
func answers(t testing.TB, client *http.Client, url string, ended <-chan struct{}) bool {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		if res, err := client.Get(url); err == nil {
			_ = res.Body.Close()
			return res.StatusCode == http.StatusOK
		}
		select {
		case <-ended:
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
	return false
}

// certify writes cert.pem and key.pem for 127.0.0.1, and gives the authority that signed.
func certify(t testing.TB, dir string) (authority []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "store"}, IsCA: true,
		BasicConstraintsValid: true, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	must(t, os.WriteFile(filepath.Join(dir, "cert.pem"), authority, 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY",
		Bytes: keyDER}), 0o600))
	return authority
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
