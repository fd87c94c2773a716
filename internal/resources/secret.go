package resources

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/layout"
	"cnmsql.co/internal/pki"
)

// Keys of the Secrets.
const (
	KeyUsername = corev1.BasicAuthUsernameKey
	KeyPassword = corev1.BasicAuthPasswordKey
	KeyCA       = corev1.ServiceAccountRootCAKey
	KeyCert     = corev1.TLSCertKey
	KeyKey      = corev1.TLSPrivateKeyKey
)

// Accounts of the server that the operator owns.
const (
	RootAccount        = "root"
	ReplicationAccount = "cnmsql_replication"
	ControlAccount     = "cnmsql_manager"
	BackupAccount      = "cnmsql_backup"
)

// RootSecret, ReplicationSecret and ControlSecret hold the operator's accounts.
// existing is the data of the Secret as it is now, if it is: a password that is
// there stays, but for the end of a line, and whatever is missing is made.
func RootSecret(c *v1alpha1.Cluster, existing map[string][]byte, random io.Reader) (*corev1.Secret, error) {
	return accountSecret(c, Names(c.Name).RootSecret(), RootAccount, existing, random)
}

// ReplicationSecret holds the account by which replicas log in to their source.
func ReplicationSecret(c *v1alpha1.Cluster, existing map[string][]byte, random io.Reader) (*corev1.Secret, error) {
	return accountSecret(c, Names(c.Name).ReplicationSecret(), ReplicationAccount, existing, random)
}

// ControlSecret holds the account by which the manager logs in to its mysqld, and that by which the Jobs of Backups
// do, which the managers make.
func ControlSecret(c *v1alpha1.Cluster, existing map[string][]byte, random io.Reader) (*corev1.Secret, error) {
	s, err := accountSecret(c, Names(c.Name).ControlSecret(), ControlAccount, existing, random)
	if err != nil {
		return nil, err
	}
	backup, err := keptOrMade(existing[layout.KeyBackupPassword], random)
	if err != nil {
		return nil, err
	}
	s.Data[layout.KeyBackupUsername], s.Data[layout.KeyBackupPassword] = []byte(BackupAccount), []byte(backup)
	return s, nil
}

// LacksBackupAccount reports whether the data of the Secret of ControlSecret have no account for Backups yet.
func LacksBackupAccount(data map[string][]byte) bool {
	return layout.SecretValue(data[layout.KeyBackupUsername]) == "" ||
		layout.SecretValue(data[layout.KeyBackupPassword]) == ""
}

// AppSecret holds the account of the application, and how to reach the
// primary. user is the data of the Secret that spec.bootstrap.initdb.secret
// names, nil when it names none or that one is of no use: its username and password are then the
// application's. Everything but the password follows from the Cluster and is
// written again, so that the URIs never contradict the password. authority is what the
// certificates of the servers are verified with; nil while it is not known.
func AppSecret(c *v1alpha1.Cluster, existing, user map[string][]byte, authority []byte,
	random io.Reader) (*corev1.Secret, error) {
	database, owner := InitDB(c)
	was := layout.SecretValue(existing[KeyUsername])
	switch {
	case user != nil:
		if err := checkUserSecret(c, was, user); err != nil {
			return nil, err
		}
		owner, existing = layout.SecretValue(user[KeyUsername]), user
	case was != "" && namesUserSecret(c):
		owner = was // the account that was made stays, whatever became of the Secret that named it
	}
	s, err := accountSecret(c, Names(c.Name).AppSecret(), owner, existing, random)
	if err != nil {
		return nil, err
	}
	secret := string(s.Data[KeyPassword])
	host := Names(c.Name).ReadWrite() + "." + c.Namespace + ".svc"
	port := strconv.Itoa(layout.MySQLPort)
	address := net.JoinHostPort(host, port)
	uri := url.URL{Scheme: "mysql", User: url.UserPassword(owner, secret), Host: address, Path: "/" + database}
	jdbc := url.URL{Scheme: "jdbc:mysql", Host: address, Path: "/" + database,
		RawQuery: url.Values{"user": {owner}, "password": {secret}, "sslMode": {"REQUIRED"}}.Encode()}
	for key, value := range map[string]string{
		"host": host, "port": port, "dbname": database, "uri": uri.String(), "jdbc-uri": jdbc.String(),
	} {
		s.Data[key] = []byte(value)
	}
	if authority != nil {
		s.Data[KeyCA] = authority
	}
	return s, nil
}

// namesUserSecret reports whether the application's account comes from a Secret of the user's.
func namesUserSecret(c *v1alpha1.Cluster) bool {
	b := c.Spec.Bootstrap
	return b != nil && b.InitDB != nil && b.InitDB.Secret != nil
}

// InitDB is the database that a cluster begins with, and the account that owns it.
func InitDB(c *v1alpha1.Cluster) (database, owner string) {
	database = "app"
	if b := c.Spec.Bootstrap; b != nil && b.InitDB != nil {
		if b.InitDB.Database != "" {
			database = b.InitDB.Database
		}
		owner = b.InitDB.Owner
	}
	if owner == "" {
		owner = database
	}
	return database, owner
}

// checkUserSecret refuses a Secret from which no account can be made, and one that names another
// account than that which was made: no server has it. It tells nothing of what is in the Secret: who may
// read the status need not be allowed to read Secrets.
func checkUserSecret(c *v1alpha1.Cluster, was string, user map[string][]byte) error {
	initdb := c.Spec.Bootstrap.InitDB
	name := initdb.Secret.Name
	for _, key := range []string{KeyUsername, KeyPassword} {
		value := layout.SecretValue(user[key])
		if value == "" {
			return fmt.Errorf("the Secret %s, which spec.bootstrap.initdb.secret names, has no key %q, or nothing but "+
				"the end of a line in it; set it (type kubernetes.io/basic-auth)", name, key)
		}
		if !layout.IsLine(value) {
			return fmt.Errorf("the key %q of the Secret %s, which spec.bootstrap.initdb.secret names, holds more than "+
				"one line, another control character, or no UTF-8; set it to one line of text", key, name)
		}
	}
	if why := UnusablePassword(c, name, user); why != "" {
		return errors.New(why)
	}
	username := layout.SecretValue(user[KeyUsername])
	if initdb.Owner != "" && initdb.Owner != username {
		return fmt.Errorf(
			"spec.bootstrap.initdb.owner is %q, but the username in the Secret %s is another; make them the same",
			initdb.Owner, name)
	}
	if len(username) > 32 || reserved(username) {
		return fmt.Errorf("the username in the Secret %s is longer than 32 characters, or an account of the server "+
			"or of the operator (root, mysql.*, cnmsql*); choose another name", name)
	}
	if c.Status.EstablishedAt != nil && was != "" && was != username {
		return fmt.Errorf("the username in the Secret %s is another by now than that of the application's account, "+
			"which is not renamed; set the username back to that in the Secret %s, "+
			"or make an account of the other name "+
			"yourself, whose Secret you keep", name, Names(c.Name).AppSecret())
	}
	return nil
}

// UnusablePassword says why no account is given the password of a Secret of the Cluster; "" if it may be. Nobody
// would be let in with it, or nobody could replicate. One that is missing is made.
func UnusablePassword(c *v1alpha1.Cluster, name string, data map[string][]byte) string {
	most, refused := layout.PasswordMost, "a server lets nobody in with"
	if name == Names(c.Name).ReplicationSecret() {
		most, refused = layout.ReplicationPasswordMost, "nobody can replicate with"
	}
	passwords := []struct{ key, what string }{{KeyPassword, "the password"}}
	if name == Names(c.Name).ControlSecret() {
		passwords = append(passwords, struct{ key, what string }{layout.KeyBackupPassword,
			"the key " + layout.KeyBackupPassword})
	}
	for _, of := range passwords {
		what, value := of.what, layout.SecretValue(data[of.key])
		switch {
		case !layout.IsLine(value):
			return fmt.Sprintf("%s in the Secret %s has several lines, another control character, or no UTF-8; "+
				"set it to one line of text", what, name)
		case len(value) > most:
			return fmt.Sprintf("%s in the Secret %s has %d bytes, and %s more than %d; set a shorter one", what,
				name, len(value), refused, most)
		}
	}
	return ""
}

// reserved is the same rule as spec.bootstrap.initdb.owner has in the CRD.
func reserved(account string) bool {
	return account == RootAccount || strings.HasPrefix(account, "mysql.") || strings.HasPrefix(account, "cnmsql")
}

func accountSecret(c *v1alpha1.Cluster, name, username string, existing map[string][]byte,
	random io.Reader) (*corev1.Secret, error) {
	secret, err := keptOrMade(existing[KeyPassword], random)
	if err != nil {
		return nil, err
	}
	return &corev1.Secret{
		TypeMeta:   typeMeta("v1", "Secret"),
		ObjectMeta: meta(c, name, componentCluster),
		Type:       corev1.SecretTypeBasicAuth,
		Data:       map[string][]byte{KeyUsername: []byte(username), KeyPassword: []byte(secret)},
	}, nil
}

// keptOrMade is the password that is there, but for the end of a line, or a new one.
func keptOrMade(existing []byte, random io.Reader) (string, error) {
	if is := layout.SecretValue(existing); is != "" {
		return is, nil
	}
	return password(random)
}

// RecoverySecret holds what an instance needs to restore the Cluster's first data.
func RecoverySecret(c *v1alpha1.Cluster, files map[string][]byte) *corev1.Secret {
	return filesSecret(meta(c, Names(c.Name).RecoverySecret(), componentCluster), files)
}

// ArchiveSecret holds what an instance needs to archive its binary logs.
func ArchiveSecret(c *v1alpha1.Cluster, files map[string][]byte) *corev1.Secret {
	return filesSecret(meta(c, Names(c.Name).ArchiveSecret(), componentCluster), files)
}

func filesSecret(m metav1.ObjectMeta, files map[string][]byte) *corev1.Secret {
	return &corev1.Secret{TypeMeta: typeMeta("v1", "Secret"), ObjectMeta: m, Type: corev1.SecretTypeOpaque, Data: files}
}

// CASecret holds the certificate authority of the cluster.
func CASecret(c *v1alpha1.Cluster, b pki.Bundle) *corev1.Secret {
	return tlsSecret(meta(c, Names(c.Name).CASecret(), componentCluster), b)
}

// Keys of the Secret of an authority beside those of a certificate, while it changes.
const (
	keyNextCert, keyNextKey = "next.crt", "next.key"
	keyLost, keyFormer      = "lost.crt", "former.crt"
)

// AuthoritySecret is CASecret of an authority that may be on its way to another.
func AuthoritySecret(c *v1alpha1.Cluster, k pki.Kept) *corev1.Secret {
	s := CASecret(c, k.Bundle)
	for key, value := range map[string][]byte{keyNextCert: k.Next.Cert, keyNextKey: k.Next.Key, keyLost: k.Lost,
		keyFormer: k.Former} {
		if len(value) > 0 {
			s.Data[key] = value
		}
	}
	return s
}

// KeptOf reads back what AuthoritySecret wrote.
func KeptOf(data map[string][]byte) pki.Kept {
	return pki.Kept{Bundle: BundleOf(data), Next: pki.Bundle{Cert: data[keyNextCert], Key: data[keyNextKey]},
		Lost: data[keyLost], Former: data[keyFormer]}
}

// InstanceTLSSecret holds the certificate of an instance.
func InstanceTLSSecret(c *v1alpha1.Cluster, instance string, b pki.Bundle) *corev1.Secret {
	return tlsSecret(instanceMeta(c, TLSSecret(instance), instance), b)
}

func tlsSecret(m metav1.ObjectMeta, b pki.Bundle) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   typeMeta("v1", "Secret"),
		ObjectMeta: m,
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{KeyCA: b.CA, KeyCert: b.Cert, KeyKey: b.Key},
	}
}

// BundleOf reads back what CASecret and InstanceTLSSecret wrote. What the Secret lacks is nil in
// the Bundle.
func BundleOf(data map[string][]byte) pki.Bundle {
	return pki.Bundle{CA: data[KeyCA], Cert: data[KeyCert], Key: data[KeyKey]}
}
