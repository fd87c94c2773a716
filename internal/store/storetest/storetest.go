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
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cnmsql.co/internal/store"
)

// Bucket is the name of the bucket that S3, GCS, Azurite and Dir make, and Path what stands before every
// key in it.
const (
	Bucket = "bucket"
	Path   = "some/path"
)

// credentials of the server; a test may write others into the directory. The stranger has an account, too, and
// no rights.
const (
	accessKey   = "access"
	secretKey   = "secret-of-the-test"
	strangerKey = "stranger"
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
	kept := t.TempDir()
	for _, d := range []string{"data/" + Bucket, "metadata"} {
		must(t, os.MkdirAll(filepath.Join(kept, d), 0o755))
	}
	return s3(t, nil, "--sidecar", filepath.Join(kept, "metadata"), filepath.Join(kept, "data"))
}

// SmallS3 is S3 with room for so much, as mount says it: all that it keeps is in memory that only it sees. The
// test is also skipped where nothing may be mounted, or such memory has no extended attributes (Linux 6.6). The
// server keeps what it knows of an object there: beside it, it would keep it of what it could not write, too, and
// refuse to create that later.
func SmallS3(t testing.TB, room string) (dir string) {
	t.Helper()
	kept := t.TempDir()
	script := `mount -t tmpfs -o size=` + room + ` none "$0" && mkdir "$0/` + Bucket + `" && exec "$@"`
	by := []string{"unshare", "--mount", "sh", "-c", script, kept}
	if said, err := exec.Command(by[0], append(by[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("nothing can be mounted here: %s", said)
	}
	var kernel unix.Utsname
	var major, minor int
	must(t, unix.Uname(&kernel))
	_, err := fmt.Sscanf(unix.ByteSliceToString(kernel.Release[:]), "%d.%d", &major, &minor)
	must(t, err)
	if major < 6 || major == 6 && minor < 6 {
		t.Skipf("Linux %d.%d has no extended attributes in memory: 6.6 has", major, minor)
	}
	return s3(t, by, kept)
}

// s3 starts an S3 server that keeps its data so, by a command that has the server's own behind it; nil is none.
func s3(t testing.TB, by []string, keeps ...string) (dir string) {
	t.Helper()
	binary := os.Getenv("CNMSQL_S3_BIN")
	if binary == "" {
		t.Skip("set CNMSQL_S3_BIN to the path that `go run -C tools/objectstore . build` prints, to try this with a " +
			"real S3 server")
	}
	home := t.TempDir()
	must(t, os.WriteFile(filepath.Join(home, "users.json"), fmt.Appendf(nil,
		`{"accessAccounts":{%[1]q:{"access":%[1]q,"secret":%[2]q,"role":"user"}}}`, strangerKey, secretKey), 0o600))
	authority := certify(t, home)
	address := serve(t, "S3", authority, "/health", func(address string) *exec.Cmd {
		all := append(slices.Clip(by), binary, "--access", accessKey, "--secret", secretKey, "--port", address,
			"--quiet", "--keep-alive", "--iam-dir", home,
			"--health", "/health", "--cert", filepath.Join(home, "cert.pem"), "--key", filepath.Join(home, "key.pem"),
			"posix")
		all = append(all, keeps...)
		return exec.Command(all[0], all[1:]...)
	})
	return Configure(t, store.Config{Endpoint: "https://" + address, Bucket: Bucket, Path: Path},
		map[string]string{store.FileAccessKeyID: accessKey + "\n", store.FileSecretKey: secretKey + "\n",
			store.FileCA: string(authority)})
}

// Deny has who reads the directory of an S3 speak with the server as somebody who has no rights, until allow.
func Deny(t testing.TB, dir string) (allow func()) {
	t.Helper()
	as := func(key string) {
		must(t, os.WriteFile(filepath.Join(dir, store.FileAccessKeyID), []byte(key+"\n"), 0o600))
	}
	as(strangerKey)
	return func() { as(accessKey) }
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
