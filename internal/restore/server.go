package restore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/clone"
	"cnmsql.co/internal/recovery"
)

// Donor is the server that a task names, as one logs in to it with the files of a directory.
func Donor(dir string, s recovery.Server) (clone.Donor, error) {
	password, err := os.ReadFile(filepath.Join(dir, recovery.FilePassword))
	if err != nil {
		return clone.Donor{}, fmt.Errorf("reading the password of %s: %w", s.Name, err)
	}
	conf, err := tlsOf(dir, s)
	if err != nil {
		return clone.Donor{}, fmt.Errorf("reading what is needed to speak with %s: %w", s.Name, err)
	}
	return clone.Donor{Address: net.JoinHostPort(s.Host, strconv.Itoa(s.Port)), User: s.User,
		Password: strings.TrimRight(string(password), "\r\n"), TLS: conf}, nil
}

func tlsOf(dir string, s recovery.Server) (*tls.Config, error) {
	authority, err := os.ReadFile(filepath.Join(dir, recovery.FileAuthority))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, errors.New("sslRootCert holds no certificate in PEM")
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: s.Host}
	if s.AnyName {
		conf.InsecureSkipVerify, conf.VerifyConnection = true, func(shown tls.ConnectionState) error {
			return isSigned(shown.PeerCertificates, roots)
		}
	}
	own := filepath.Join(dir, recovery.FileCertificate)
	if _, err := os.Stat(own); errors.Is(err, os.ErrNotExist) {
		return conf, nil
	}
	pair, err := tls.LoadX509KeyPair(own, filepath.Join(dir, recovery.FileKey))
	conf.Certificates = []tls.Certificate{pair}
	return conf, err
}

// isSigned refuses a certificate that none of the authorities has signed, whomever it names.
func isSigned(shown []*x509.Certificate, roots *x509.CertPool) error {
	if len(shown) == 0 {
		return errors.New("the server shows no certificate")
	}
	between := x509.NewCertPool()
	for _, c := range shown[1:] {
		between.AddCert(c)
	}
	_, err := shown[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between})
	return err
}

// Copy writes the data of a running server into an empty directory, on which mysqld of this version can be
// started when it returns nil; until then mysqld refuses to. Nothing is written if the version does not
// fit. The moment of which the data are is at the end. After an error the directory is to be thrown away.
func Copy(ctx context.Context, donor clone.Donor, root *os.Root, version string,
	progress func(done, expected int64)) (err error) {
	to := &copying{Applier: clone.NewApplier(root), version: version, progress: progress}
	defer func() {
		if closeErr := to.Close(); err == nil {
			err = closeErr
		}
	}()
	if err := clone.Snapshot(ctx, donor, to); err != nil {
		return err
	}
	if err := to.Finish(ctx); err != nil {
		return fmt.Errorf("finishing the directory: %w", err)
	}
	progress(to.done, to.done)
	return nil
}

// often is how much time is at least between two words of progress.
const often = 300 * time.Millisecond

// copying is an Applier that looks whom it gets the data from, and tells how far it is.
type copying struct {
	*clone.Applier
	version        string
	progress       func(done, expected int64)
	done, expected int64
	told           time.Time
}

// Begin implements clone.Consumer.
func (c *copying) Begin(ctx context.Context, from clone.Origin) error {
	if err := backup.Fits("the external server", from.Version(), c.version); err != nil {
		return err
	}
	return c.Applier.Begin(ctx, from)
}

// Take implements clone.Consumer.
func (c *copying) Take(ctx context.Context, r clone.Record) error {
	if s, ok := r.Descriptor.(clone.StateChange); ok && s.Start() {
		c.expected += int64(min(s.Bytes, 1<<50))
	}
	c.done += int64(len(r.Data))
	if now := time.Now(); now.Sub(c.told) >= often {
		c.told = now
		c.progress(c.done, max(c.done, c.expected))
	}
	return c.Applier.Take(ctx, r)
}
