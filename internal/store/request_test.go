package store_test

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

func TestCredentialsAreReadAgain(t *testing.T) {
	var last http.Header
	s, dir := faulty(t, forSuccess, func(_ http.ResponseWriter, r *http.Request) { last = r.Header.Clone() })
	must(t, s.Put(t.Context(), "key", nil))
	if !strings.Contains(last.Get("Authorization"), "Credential="+id+"/") {
		t.Errorf("signed by %s", last.Get("Authorization"))
	}
	// As a kubelet replaces a Secret.
	must(t, os.Mkdir(filepath.Join(dir, "..second"), 0o700))
	for name, text := range map[string]string{store.FileAccessKeyID: "second\n", store.FileSecretKey: "x",
		store.FileSessionToken: "token"} {
		must(t, os.WriteFile(filepath.Join(dir, "..second", name), []byte(text), 0o600))
	}
	must(t, os.Symlink("..second", filepath.Join(dir, "..data")))
	must(t, s.Put(t.Context(), "key", nil))
	if !strings.Contains(last.Get("Authorization"), "Credential=second/") ||
		last.Get("X-Amz-Security-Token") != "token" {
		t.Errorf("signed by %s", last.Get("Authorization"))
	}
	must(t, os.Remove(filepath.Join(dir, "..second", store.FileSecretKey)))
	mustFail(t, s.Put(t.Context(), "key", nil), store.CredentialsWrong)
}

func TestARequestSaysWhatItCarriesAndHowToKeepIt(t *testing.T) {
	var last *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { last = r }))
	t.Cleanup(server.Close)
	dir := storetest.Configure(t, store.Config{Endpoint: server.URL, Bucket: "bucket", Region: "eu-north-1",
		StorageClass: "STANDARD_IA", ServerSideEncryption: "aws:kms:a-key"},
		map[string]string{store.FileAccessKeyID: id, store.FileSecretKey: secret})
	must(t, openFor(t, forSuccess, dir).Put(t.Context(), "key", []byte("body")))

	sha, md := sha256.Sum256([]byte("body")), md5.Sum([]byte("body"))
	same(t, last.URL.EscapedPath(), "/bucket/key")
	same(t, last.Header.Get("X-Amz-Content-Sha256"), hex.EncodeToString(sha[:]))
	same(t, last.Header.Get("Content-Md5"), base64.StdEncoding.EncodeToString(md[:]))
	same(t, last.Header.Get("X-Amz-Storage-Class"), "STANDARD_IA")
	same(t, last.Header.Get("X-Amz-Server-Side-Encryption"), "aws:kms")
	same(t, last.Header.Get("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id"), "a-key")
	signed := last.Header.Get("Authorization")
	if !strings.Contains(signed, "/eu-north-1/s3/") || !strings.Contains(signed, "x-amz-content-sha256") {
		t.Errorf("signed by %s", signed)
	}
}

func TestAPodsRoleSigns(t *testing.T) {
	role := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"AccessKeyId":"of-the-role","SecretAccessKey":"x","Token":"token","Expiration":%q}`,
			time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}))
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", role.URL)
	var last http.Header
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter,
		r *http.Request) {
		last = r.Header.Clone()
	}))
	t.Cleanup(server.Close)
	dir := storetest.Configure(t, store.Config{Endpoint: server.URL, Bucket: "bucket", Ambient: true}, nil)
	must(t, openFor(t, forSuccess, dir).Put(t.Context(), "key", nil))
	if !strings.Contains(last.Get("Authorization"), "Credential=of-the-role/") ||
		last.Get("X-Amz-Security-Token") != "token" {
		t.Errorf("signed by %s", last.Get("Authorization"))
	}
	role.Close()
	mustFail(t, openFor(t, forRefusal, dir).Put(t.Context(), "key", nil), store.CredentialsWrong)
}

func TestVirtualHost(t *testing.T) {
	t.Parallel()
	dir := storetest.Configure(t, store.Config{Endpoint: "http://store.invalid", Bucket: "bucket", VirtualHost: true},
		map[string]string{store.FileAccessKeyID: id, store.FileSecretKey: secret})
	err := openFor(t, forSilence, dir).Put(t.Context(), "key", nil)
	if err == nil || !strings.Contains(err.Error(), "http://bucket.store.invalid/key") {
		t.Errorf("not the host that was wanted: %v", err)
	}
}
