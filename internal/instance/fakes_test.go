package instance

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/observation"
)

// fakeKube is an API server with one Cluster and one Lease.
type fakeKube struct {
	mu      sync.Mutex
	cluster *v1alpha1.Cluster
	lease   coordination.Lease // made by the operator, unless noLease
	noLease bool
	version int
	changed chan struct{}
	down    bool
}

func (k *fakeKube) get() *v1alpha1.Cluster {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.cluster.DeepCopy()
}

func (k *fakeKube) edit(f func(*v1alpha1.Cluster)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.cluster.DeepCopy()
	f(c)
	k.version++
	c.ResourceVersion = strconv.Itoa(k.version)
	k.cluster = c
	close(k.changed)
	k.changed = make(chan struct{})
}

func (k *fakeKube) WatchCluster(ctx context.Context, each func(*v1alpha1.Cluster)) {
	for {
		k.mu.Lock()
		c, changed := k.cluster.DeepCopy(), k.changed
		k.mu.Unlock()
		each(c)
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

func (k *fakeKube) Cluster(context.Context) (*v1alpha1.Cluster, error) { return k.get(), nil }

func (k *fakeKube) PublishPrimary(_ context.Context, instance, version string, at time.Time) error {
	if k.get().ResourceVersion != version {
		return apierrors.NewConflict(schema.GroupResource{}, "db", nil)
	}
	k.edit(func(c *v1alpha1.Cluster) {
		now := metav1.NewMicroTime(at)
		c.Status.CurrentPrimary, c.Status.CurrentPrimaryTimestamp = instance, &now
	})
	return nil
}

func (k *fakeKube) RingDoorbell(context.Context, string, string) error { return nil }

func (k *fakeKube) GetLease(context.Context) (*coordination.Lease, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.noLease {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, "db-primary")
	}
	k.lease.Name = "db-primary"
	return k.lease.DeepCopy(), nil
}

func (k *fakeKube) UpdateLease(_ context.Context, l *coordination.Lease) (*coordination.Lease, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.down {
		return nil, apierrors.NewServiceUnavailable("down")
	}
	if k.lease.ResourceVersion != l.ResourceVersion {
		return nil, apierrors.NewConflict(schema.GroupResource{}, "db-primary", nil)
	}
	k.version++
	l.DeepCopyInto(&k.lease)
	k.lease.ResourceVersion = strconv.Itoa(k.version)
	return k.lease.DeepCopy(), nil
}

func (k *fakeKube) setDown(down bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.down = down
}

// holder reads the lease.
func (k *fakeKube) holder() (who string, epoch int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	is := observation.LeaseFacts(&k.lease)
	return is.Holder, is.Epoch
}

// authority issues certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
}

func newAuthority(t *testing.T) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, IsCA: true,
		BasicConstraintsValid: true,
		NotBefore:             time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	must(t, err)
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	return &authority{cert: cert, key: key, pem: encode("CERTIFICATE", der)}
}

func (a *authority) issue(t *testing.T, org, name string) (cert, keyText string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name,
		Organization: []string{org}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	if ip := net.ParseIP(name); ip != nil {
		tmpl.IPAddresses = []net.IP{ip}
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, &key.PublicKey, a.key)
	must(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", keyDER)
}

func encode(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
