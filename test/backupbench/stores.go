package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"cnmsql.co/internal/store"
	"cnmsql.co/test/mysqld"
)

const (
	bucket    = "bucket"
	accessKey = "access"
	secretKey = "secret-of-the-bench"
)

// openStores makes a store in a directory, and one in a real S3 server that speaks TLS.
// Each is told of by a directory for store.Open.
func (s *stage) openStores(ctx context.Context, binary string) error {
	if err := os.MkdirAll(s.dir+"/directory/"+bucket, 0o755); err != nil {
		return err
	}
	if err := s.configure("directory", store.Config{Endpoint: "file://" + s.dir + "/directory",
		Bucket: bucket}, nil); err != nil {
		return err
	}
	home := s.dir + "/s3"
	if err := errors.Join(os.MkdirAll(home+"/data/"+bucket, 0o755), os.MkdirAll(home+"/metadata", 0o755),
		mysqld.Certify(home)); err != nil {
		return err
	}
	address, err := mysqld.FreeAddress()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, binary, "--access", accessKey, "--secret", secretKey, "--port", address,
		"--quiet", "--keep-alive",
		"--health", "/health", "--cert", home+"/cert.pem", "--key", home+"/key.pem", "posix", "--sidecar",
		home+"/metadata", home+"/data")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if s.s3, err = mysqld.Start(cmd); err != nil {
		return err
	}
	authority, err := os.ReadFile(home + "/ca.pem")
	if err != nil {
		return err
	}
	if err := s.s3.Answers(ctx, "the S3 server", func() error { return healthy(address, authority) }); err != nil {
		return err
	}
	return s.configure("S3", store.Config{Endpoint: "https://" + address, Bucket: bucket},
		map[string]string{store.FileAccessKeyID: accessKey, store.FileSecretKey: secretKey,
			store.FileCA: string(authority)})
}

func healthy(address string, authority []byte) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	res, err := client.Get("https://" + address + "/health")
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// nowhere is the directory, of which the parts of a backup are thrown away: what is left is
// what the donor and the client take.
const nowhere = "nowhere"

// withoutParts is that store.
type withoutParts struct{ store.Store }

// Put throws a backup's parts away, and stores all else.
func (w withoutParts) Put(ctx context.Context, key string, body []byte) error {
	if strings.Contains(key, "/part-") {
		return ctx.Err()
	}
	return w.Store.Put(ctx, key, body)
}

// storeOf is where store.Open finds the store of a name.
func (s *stage) storeOf(name string) string { return s.dir + "/store-" + name }

func (s *stage) configure(name string, config store.Config, files map[string]string) error {
	dir := s.storeOf(name)
	text, err := json.Marshal(config)
	if err = errors.Join(err, os.Mkdir(dir, 0o755), os.WriteFile(dir+"/"+store.FileConfig, text, 0o600)); err != nil {
		return err
	}
	for file, content := range files {
		if err := os.WriteFile(dir+"/"+file, []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}
