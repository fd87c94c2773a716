package client

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	"cnmsql.co/internal/control"
	"cnmsql.co/internal/layout"
	"cnmsql.co/internal/pki"
)

// statusLimit is how long the manager may take: it asks mysqld within a second.
const statusLimit = 3 * time.Second

// manager is where this Pod's manager is asked, and with which certificate.
type manager struct {
	address, host, tlsDir string
}

// thisPod is known by the environment that the manager itself was given.
func thisPod() (manager, error) {
	instance, namespace := os.Getenv(layout.EnvInstance), os.Getenv(layout.EnvNamespace)
	if instance == "" || namespace == "" {
		return manager{}, fmt.Errorf("the variables %s and %s are not set: this command works in the Pod of an "+
			"instance only (kubectl exec POD -c %s -- %s instance status)",
			layout.EnvInstance, layout.EnvNamespace, layout.Container, layout.Binary)
	}
	return manager{address: net.JoinHostPort("localhost", strconv.Itoa(layout.ControlPort)),
		host: layout.InstanceHost(instance, namespace), tlsDir: layout.TLSDir}, nil
}

// status prints the manager's word on one line.
func (m manager) status(ctx context.Context, out io.Writer) error {
	conf, err := m.tls()
	if err != nil {
		return err
	}
	c := control.NewClient(m.address, conf)
	defer c.Close()
	snap, err := c.Status(ctx)
	if err != nil {
		return fmt.Errorf("asking the manager of this Pod: %w", err)
	}
	return json.NewEncoder(out).Encode(snap)
}

// tls is the instance's own: a peer, which this is, may read the status.
func (m manager) tls() (*tls.Config, error) {
	return pki.ClientTLS(m.tlsDir, m.host, tls.VersionTLS13)
}
