package testbed

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"filippo.io/age"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/internal/pki"
)

const (
	objectStoreImage = "localhost/cnmsql/objectstore:dev"
	// Bucket of the object store.
	Bucket = "backups"
)

// StoreOwner may always use the object store.
var StoreOwner = Account{ID: "access", Secret: "secret-of-the-store"}

// Account is who may use an object store.
type Account struct{ ID, Secret string }

// ObjectStore is a real S3 server in the local Kubernetes, which speaks TLS.
type ObjectStore struct {
	Namespace string
	// Endpoint is its URL, and CA the PEM by which it is verified.
	Endpoint string
	CA       []byte
	// Key are identities of age, one a line: the first encrypts backups, where they are to be.
	Key string
	// Account is whom the Secret of Credentials names.
	Account Account
}

// objectStoreManifest is its namespace, its Pod and its Service. The bucket is a directory.
const objectStoreManifest = `
apiVersion: v1
kind: Secret
metadata: {name: certificate, namespace: %[1]s}
stringData:
  tls.crt: %[2]q
  tls.key: %[3]q
---
apiVersion: v1
kind: Service
metadata: {name: s3, namespace: %[1]s}
spec:
  selector: {app: s3}
  ports: [{port: 443, targetPort: 7070}]
---
apiVersion: v1
kind: Pod
metadata: {name: s3, namespace: %[1]s, labels: {app: s3}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: s3
    image: %[4]s
    command: [/cnmsql, --access, %[5]s, --secret, %[6]s, --port, ":7070", --health, /health, --quiet,
      --cert, /certificate/tls.crt, --key, /certificate/tls.key,
      --iam-dir, /accounts, --iam-cache-disable, posix, --sidecar, /metadata, /data]
    readinessProbe: {httpGet: {path: /health, port: 7070, scheme: HTTPS}, periodSeconds: 1}
    volumeMounts:
    - {name: certificate, mountPath: /certificate}
    - {name: data, mountPath: /data}
    - {name: bucket, mountPath: /data/%[7]s}
    - {name: metadata, mountPath: /metadata}
    - {name: accounts, mountPath: /accounts}
  volumes:
  - {name: certificate, secret: {secretName: certificate}}
  - {name: data, emptyDir: {}}
  - {name: bucket, emptyDir: {}}
  - {name: metadata, emptyDir: {}}
  - {name: accounts, emptyDir: {}}
`

// StartObjectStore brings up an object store with an empty bucket, in a namespace that must
// exist.
func (b *Bed) StartObjectStore(ctx context.Context, namespace string) (*ObjectStore, error) {
	if err := b.loadObjectStore(ctx); err != nil {
		return nil, err
	}
	host := "s3." + namespace + ".svc"
	bundle, err := pki.NewCA("store", time.Now())
	if err != nil {
		return nil, err
	}
	ca, err := pki.ParseCA(bundle)
	if err != nil {
		return nil, err
	}
	leaf, err := ca.Issue(pki.Leaf{Name: "s3", DNSNames: []string{host}}, time.Now())
	if err != nil {
		return nil, err
	}
	manifest := fmt.Sprintf(objectStoreManifest, namespace, leaf.Cert, leaf.Key, objectStoreImage,
		StoreOwner.ID, StoreOwner.Secret, Bucket)
	if _, err := b.Kubectl(ctx, strings.NewReader(manifest), "apply", "-f", "-"); err != nil {
		return nil, err
	}
	_, err = b.Kubectl(ctx, nil, "-n", namespace, "wait", "--for=condition=Ready", "pod/s3", "--timeout=2m")
	if err != nil {
		return nil, err
	}
	key, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	return &ObjectStore{Namespace: namespace, Endpoint: "https://" + host, CA: ca.Trust(), Key: key.String(),
		Account: StoreOwner}, nil
}

// StorePath is a path of the object store's container as this machine has it: objects lie below
// /data, as files.
func (b *Bed) StorePath(ctx context.Context, s *ObjectStore, path string) (string, error) {
	pid, err := b.PID(ctx, types.NamespacedName{Namespace: s.Namespace}, "s3", "cnmsql")
	return fmt.Sprintf("/proc/%d/root%s", pid, path), err
}

// Admit lets these accounts use the object store from now on, beside StoreOwner, and no other.
func (b *Bed) Admit(ctx context.Context, s *ObjectStore, accounts ...Account) error {
	all := map[string]any{}
	for _, a := range accounts {
		all[a.ID] = map[string]string{"access": a.ID, "secret": a.Secret, "role": "admin"}
	}
	text, err := json.Marshal(map[string]any{"accessAccounts": all})
	if err != nil {
		return err
	}
	file, err := b.StorePath(ctx, s, "/accounts/users.json")
	if err != nil {
		return err
	}
	// Its name comes last: the server reads it with each request.
	if err := os.WriteFile(file+".new", text, 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// EmptyStore removes all objects.
func (b *Bed) EmptyStore(ctx context.Context, s *ObjectStore) error {
	for _, dir := range []string{"/data/", "/metadata/"} {
		path, err := b.StorePath(ctx, s, dir+Bucket+"/some")
		if err != nil {
			return err
		}
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}

// loadObjectStore puts the S3 server's image on the nodes.
func (b *Bed) loadObjectStore(ctx context.Context) error {
	binary, err := b.run(ctx, nil, "go", "run", "-C", "tools/objectstore", ".", "build")
	if err != nil {
		return err
	}
	archive := filepath.Join(b.bin, "objectstore.tar")
	if _, err := b.run(ctx, nil, "go", "run", "./tools/image", "operator",
		"--binary", strings.TrimSpace(binary), "--tag", objectStoreImage, "--out", archive); err != nil {
		return err
	}
	_, err = b.Localkube(ctx, "load", archive)
	return err
}

// Credentials is the manifest of a Secret that lets its namespace use the store.
func (s *ObjectStore) Credentials(namespace string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: store, namespace: %s}\nstringData:\n  id: "+
		"%q\n  key: %q\n  ca: %q\n  age: %q\n",
		namespace, s.Account.ID, s.Account.Secret, s.CA, s.Key)
}

// Spec is an objectStore that names the Secret of Credentials, in one line of YAML.
func (s *ObjectStore) Spec() string {
	return fmt.Sprintf("{bucket: %s, path: some/path, endpoint: %q, region: us-east-1, credentials: {accessKeyId: "+
		"{name: store, key: id}, "+
		"secretAccessKey: {name: store, key: key}}, tls: {caBundleSecret: {name: store, key: ca}}}", Bucket, s.Endpoint)
}

// Encrypted is Spec with a key by which all is encrypted.
func (s *ObjectStore) Encrypted() string {
	return strings.TrimSuffix(s.Spec(), "}") + ", encryption: {identity: {name: store, key: age}}}"
}
