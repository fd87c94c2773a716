package kubeapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// Client talks to one API server as one user.
type Client struct {
	server string
	http   *http.Client
}

// New reads the authority and the key pair from their files. It uses no proxy:
// the API server is on this machine.
func New(server, caFile, certFile, keyFile string) (*Client, error) {
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}
	return &Client{server: server, http: &http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{TLSClientConfig: config},
	}}, nil
}

// Get returns what is at a path.
func (c *Client) Get(ctx context.Context, path string) ([]byte, error) {
	return c.do(ctx, http.MethodGet, path, "", nil)
}

// GetInto decodes what is at a path.
func (c *Client) GetInto(ctx context.Context, path string, into any) error {
	data, err := c.Get(ctx, path)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// Apply makes an object as it is said, or changes it to that.
func (c *Client) Apply(ctx context.Context, path string, object any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	_, err = c.do(ctx, http.MethodPatch, path+"?fieldManager=localkube&force=true",
		"application/apply-patch+yaml", body)
	return err
}

// Merge changes single fields of an object.
func (c *Client) Merge(ctx context.Context, path string, patch any) error {
	body, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = c.do(ctx, http.MethodPatch, path, "application/merge-patch+json", body)
	return err
}

func (c *Client) do(ctx context.Context, method, path, contentType string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.server+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, bytes.TrimSpace(data))
	}
	return data, nil
}
