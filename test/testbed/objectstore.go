package testbed

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"filippo.io/age"

	"cnmsql.co/internal/pki"
)

const (
	objectStoreImage = "localhost/cnmsql/objectstore:dev"
	// Bucket of the object store, and who may use it.
	Bucket         = "backups"
	StoreAccessKey = "access"
	StoreSecretKey = "secret-of-the-store"
)

// ObjectStore is a real S3 server in the local Kubernetes, which speaks TLS.
type ObjectStore struct {
	Namespace string
	// Endpoint is its URL, and CA the PEM by which it is verified.
	Endpoint string
	CA       []byte
	// Key is an identity of age, by which backups can be encrypted.
	Key string
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
      --cert, /certificate/tls.crt, --key, /certificate/tls.key, posix, --sidecar, /metadata, /data]
    readinessProbe: {httpGet: {path: /health, port: 7070, scheme: HTTPS}, periodSeconds: 1}
    volumeMounts:
    - {name: certificate, mountPath: /certificate}
    - {name: data, mountPath: /data}
    - {name: bucket, mountPath: /data/%[7]s}
    - {name: metadata, mountPath: /metadata}
  volumes:
  - {name: certificate, secret: {secretName: certificate}}
  - {name: data, emptyDir: {}}
  - {name: bucket, emptyDir: {}}
  - {name: metadata, emptyDir: {}}
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
	manifest := fmt.Sprintf(objectStoreManifest, namespace, leaf.Cert, leaf.Key, objectStoreImage, StoreAccessKey,
		StoreSecretKey, Bucket)
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
	return &ObjectStore{Namespace: namespace, Endpoint: "https://" + host, CA: ca.Trust(), Key: key.String()}, nil
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
		namespace, StoreAccessKey, StoreSecretKey, s.CA, s.Key)
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
