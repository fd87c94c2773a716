package instance

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"cnmsql.co/internal/layout"
	"cnmsql.co/internal/mysql"
)

// readAccount reads an account from a mounted Secret. One without a password is none: whoever
// knows its name would be let in. One with a password that is too long is none either: nobody would
// be, the manager and the replicas included. Nor is one that is more than a line of text: mysqld refuses it
// where replication begins, and repeats it whole as it does.
func readAccount(dir string) (mysql.Account, error) {
	return readAccountWithin(dir, layout.KeyUsername, layout.KeyPassword, layout.PasswordMost, nobodyIn)
}

const nobodyIn = "a server lets nobody in with"

// replicationAccount is the account by which replicas and members of a group receive. Nobody could follow
// with a password that is longer than a channel takes, although the server itself would let it in.
func (d Dirs) replicationAccount() (mysql.Account, error) {
	return readAccountWithin(d.Replication, layout.KeyUsername, layout.KeyPassword, layout.ReplicationPasswordMost,
		"nobody can replicate with")
}

// backupAccount is the account of the Jobs of Backups. It is the zero Account while its Secret has none, as an
// operator of an earlier release makes it.
func (d Dirs) backupAccount() (mysql.Account, error) {
	if _, err := os.Stat(filepath.Join(d.Control, layout.KeyBackupUsername)); errors.Is(err, os.ErrNotExist) {
		return mysql.Account{}, nil
	}
	return readAccountWithin(d.Control, layout.KeyBackupUsername, layout.KeyBackupPassword, layout.PasswordMost,
		nobodyIn)
}

// replicationUser is that account's name, whatever is wrong with its password.
func (d Dirs) replicationUser() (string, error) { return readKey(d.Replication, layout.KeyUsername) }

func readAccountWithin(dir, userKey, passwordKey string, most int, refused string) (mysql.Account, error) {
	user, err := readKey(dir, userKey)
	if err != nil {
		return mysql.Account{}, err
	}
	password, err := readKey(dir, passwordKey)
	if err == nil && (user == "" || password == "") {
		err = fmt.Errorf("the Secret mounted at %s has no %s or no %s; "+
			"an account without a password is never made: set both keys in the Secret", dir, userKey, passwordKey)
	}
	if err == nil && !(layout.IsLine(user) && layout.IsLine(password)) {
		err = fmt.Errorf("%s or %s in the Secret mounted at %s has several lines, another control "+
			"character, or no UTF-8: set it to one line of text", userKey, passwordKey, dir)
	}
	if err == nil && len(password) > most {
		err = fmt.Errorf("%s in the Secret mounted at %s has %d bytes, and %s more than %d: "+
			"set a shorter one", passwordKey, dir, len(password), refused, most)
	}
	if err != nil {
		return mysql.Account{}, err
	}
	return mysql.Account{User: user, Password: password}, nil
}

func readKey(dir, key string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, key))
	if err != nil {
		return "", fmt.Errorf("reading a mounted Secret: %w", err)
	}
	return layout.SecretValue(text), nil
}

// tlsFiles reads certificates from disk when they have changed, so that rotated
// ones are used at the next handshake.
type tlsFiles struct {
	dirs Dirs

	mu    sync.Mutex
	stamp string
	leaf  *tls.Certificate
	cas   *x509.CertPool
}

func (t *tlsFiles) refresh() error {
	stamp, err := stampOf(t.dirs.ca(), t.dirs.cert(), t.dirs.key())
	if err != nil || stamp == t.stamp {
		return err
	}
	leaf, err := tls.LoadX509KeyPair(t.dirs.cert(), t.dirs.key())
	if err != nil {
		return fmt.Errorf("loading the instance's certificate: %w", err)
	}
	text, err := os.ReadFile(t.dirs.ca())
	if err != nil {
		return fmt.Errorf("loading the cluster's CA: %w", err)
	}
	cas := x509.NewCertPool()
	if !cas.AppendCertsFromPEM(text) {
		return errors.New("loading the cluster's CA: " + t.dirs.ca() + " holds no certificate")
	}
	t.leaf, t.cas, t.stamp = &leaf, cas, stamp
	return nil
}

// stampOf changes whenever one of the files does.
func stampOf(files ...string) (string, error) {
	var b strings.Builder
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			return "", fmt.Errorf("looking for certificates: %w", err)
		}
		fmt.Fprintf(&b, "%s %d;", info.ModTime().Format(time.RFC3339Nano), info.Size())
	}
	return b.String(), nil
}

// A certificate that cannot be read now does not take the one in use away.
func (t *tlsFiles) certificate() (*tls.Certificate, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.refresh(); err != nil && t.leaf == nil {
		return nil, err
	}
	return t.leaf, nil
}

func (t *tlsFiles) pool() (*x509.CertPool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.refresh(); err != nil && t.cas == nil {
		return nil, err
	}
	return t.cas, nil
}

// dial is the configuration for a standing connection to another instance: the
// certificate is looked at again with each handshake.
func (t *tlsFiles) dial(host string) (*tls.Config, error) {
	conf, err := t.client(host)
	if err != nil {
		return nil, err
	}
	conf.Certificates = nil
	conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return t.certificate() }
	// The pool of CAs may change, too, so that the peer is verified here.
	conf.InsecureSkipVerify = true
	conf.VerifyConnection = func(s tls.ConnectionState) error {
		cas, err := t.pool()
		if err != nil {
			return err
		}
		between := x509.NewCertPool()
		for _, c := range s.PeerCertificates[1:] {
			between.AddCert(c)
		}
		_, err = s.PeerCertificates[0].Verify(x509.VerifyOptions{DNSName: host, Roots: cas, Intermediates: between})
		return err
	}
	return conf, nil
}

// client is the configuration to speak to another instance.
func (t *tlsFiles) client(host string) (*tls.Config, error) {
	leaf, err := t.certificate()
	if err != nil {
		return nil, err
	}
	cas, err := t.pool()
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, ServerName: host, RootCAs: cas,
		Certificates: []tls.Certificate{*leaf}}, nil
}
