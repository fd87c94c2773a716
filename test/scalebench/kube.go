package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/resources"
)

// kube is a real API server with its etcd, and what plays the rest of a Kubernetes.
type kube struct {
	env  *envtest.Environment
	live client.Client
	seen cache.Cache
	// config is a file by which the operator reaches it.
	config string
}

// nodes of the Kubernetes, on which a third of all primaries is each.
var nodes = []string{"node-1", "node-2", "node-3"}

// startKube starts an API server whose data are in dir.
func startKube(ctx context.Context, bin, dir string) (*kube, error) {
	k := &kube{config: filepath.Join(dir, "kubeconfig"), env: &envtest.Environment{
		BinaryAssetsDirectory: bin, CRDDirectoryPaths: []string{"charts/cnmsql/files"}, ErrorIfCRDPathMissing: true,
		ControlPlaneStartTimeout: 2 * time.Minute, ControlPlaneStopTimeout: time.Minute}}
	k.env.ControlPlane.GetAPIServer().Configure().Set("service-cluster-ip-range", "10.0.0.0/16")
	conf, err := k.env.Start()
	if err != nil {
		return k, fmt.Errorf("starting the API server from %s: %w", bin, err)
	}
	if err := os.WriteFile(k.config, k.env.KubeConfig, 0o600); err != nil {
		return k, err
	}
	return k, k.connect(ctx, conf)
}

func (k *kube) connect(ctx context.Context, conf *rest.Config) error {
	scheme := runtime.NewScheme()
	err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme))
	if err != nil {
		return err
	}
	conf = rest.CopyConfig(conf)
	conf.QPS = -1
	if k.live, err = client.New(conf, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if k.seen, err = cache.New(conf, cache.Options{Scheme: scheme}); err != nil {
		return err
	}
	for _, name := range nodes {
		if err := k.live.Create(ctx, node(name)); err != nil {
			return err
		}
	}
	go func() { _ = k.seen.Start(ctx) }()
	return nil
}

func (k *kube) stop() error { return k.env.Stop() }

func node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady,
			Status: corev1.ConditionTrue}}}}
}

// identity is the certificate that the operator made for the instance, and whom it trusts.
func (in *instance) identity(ctx context.Context) (*tls.Certificate, *x509.CertPool, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.leaf != nil {
		return in.leaf, in.pool, nil
	}
	var s corev1.Secret
	key := types.NamespacedName{Namespace: in.key.Namespace, Name: resources.TLSSecret(in.key.Name)}
	if err := in.fleet.kube.live.Get(ctx, key, &s); err != nil {
		return nil, nil, err
	}
	bundle := resources.BundleOf(s.Data)
	leaf, err := bundle.TLS()
	if err != nil {
		return nil, nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle.CA)
	in.leaf, in.pool = &leaf, pool
	return in.leaf, in.pool, nil
}
