package storetest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cnmsql.co/internal/store"
)

// GCS starts a server that speaks as Google Cloud Storage, with an empty bucket and TLS,
// which is stopped when the test ends, and gives a directory for store.Open that tells of
// it. It does not look at who asks. The test is skipped unless CNMSQL_GCS_BIN is the path
// that `go run -C tools/objectstore . build-gcs` prints.
func GCS(t testing.TB) (dir string) {
	t.Helper()
	binary := os.Getenv("CNMSQL_GCS_BIN")
	if binary == "" {
		t.Skip("set CNMSQL_GCS_BIN to the path that `go run -C tools/objectstore . build-gcs` prints, to try this " +
			"with a server that speaks as Google's")
	}
	home := t.TempDir()
	authority := certify(t, home)
	address := serve(t, "GCS", authority, "/_internal/healthcheck", func(address string) *exec.Cmd {
		_, port, err := net.SplitHostPort(address)
		must(t, err)
		return exec.Command(binary, "-backend", "memory", "-scheme", "https", "-host", "127.0.0.1", "-port", port,
			"-public-host", address,
			"-log-level", "error", "-cert-location", filepath.Join(home, "cert.pem"), "-private-key-location",
			filepath.Join(home, "key.pem"))
	})
	res, err := trusting(t, authority).Post("https://"+address+"/storage/v1/b?project=test", "application/json",
		strings.NewReader(`{"name":"`+Bucket+`"}`))
	must(t, err)
	must(t, res.Body.Close())
	if res.StatusCode != http.StatusOK {
		t.Fatalf("making the bucket: %s", res.Status)
	}
	return Configure(t, store.Config{Protocol: store.GCS, Endpoint: "https://" + address, Bucket: Bucket, Path: Path},
		map[string]string{store.FileGoogleKey: GoogleKey(t, "me@test"), store.FileCA: string(authority)})
}

// rsaKey is made once: that takes a while.
var rsaKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// GoogleKey is the key of a service account, in JSON as Google gives it out.
func GoogleKey(t testing.TB, email string) string {
	t.Helper()
	key, err := rsaKey()
	must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	text, err := json.Marshal(map[string]string{"type": "service_account", "client_email": email, "private_key_id": "1",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))})
	must(t, err)
	return string(text)
}
