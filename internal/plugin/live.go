package plugin

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"

	"cnmsql.co/internal/control"
	"cnmsql.co/internal/layout"
	"cnmsql.co/internal/pki"
	"cnmsql.co/internal/resources"
)

// liveLimit is how long instances may take to answer.
const liveLimit = 3 * time.Second

// asker asks instances over forwarded ports, for Pod addresses lead nowhere
// from a user's machine.
type asker struct {
	conf      *rest.Config
	pods      rest.Interface
	namespace string
	tls       *tls.Config
}

// askAll asks every instance whose Pod runs, side by side, and the primary once
// more when all have answered (see Facts.Reference).
func askAll(ctx context.Context, s *session, f *Facts) {
	ctx, cancel := context.WithTimeout(ctx, liveLimit)
	defer cancel()
	a, err := newAsker(ctx, s, f.Cluster.Name)
	if err != nil {
		f.LiveProblem = err.Error()
		return
	}
	f.Live = map[string]Live{}
	var mu sync.Mutex
	var clients sync.Map
	var all sync.WaitGroup
	for _, name := range instanceNames(&f.Cluster.Status) {
		if why := notRunning(f.Pods, name); why != "" {
			f.Live[name] = Live{Problem: why}
			continue
		}
		all.Go(func() {
			c, l := a.ask(ctx, name)
			mu.Lock()
			defer mu.Unlock()
			f.Live[name] = l
			if c != nil {
				clients.Store(name, c)
			}
		})
	}
	all.Wait()
	if c, ok := clients.Load(f.holder()); ok {
		if snap, err := c.(*control.Client).Status(ctx); err == nil {
			f.Reference = &snap.Report
		}
	}
	clients.Range(func(_, c any) bool { c.(*control.Client).Close(); return true })
}

func notRunning(pods map[string]*corev1.Pod, name string) string {
	pod := pods[name]
	switch {
	case pods == nil:
		return ""
	case pod == nil:
		return "its Pod does not exist"
	case pod.Status.Phase != corev1.PodRunning:
		return "its Pod is " + orElse(string(pod.Status.Phase), "Pending")
	default:
		return ""
	}
}

// newAsker makes a client certificate in memory, of an instance's kind: peers
// may read each other's status and order nothing.
func newAsker(ctx context.Context, s *session, cluster string) (*asker, error) {
	secret := &corev1.Secret{}
	name := resources.Names(cluster).CASecret()
	if err := s.client.Get(ctx, types.NamespacedName{Namespace: s.namespace, Name: name}, secret); err != nil {
		return nil, fmt.Errorf("instances were not asked, for that needs the Secret %s: %w", name, err)
	}
	ca, err := pki.ParseCA(resources.BundleOf(secret.Data))
	if err != nil {
		return nil, fmt.Errorf("instances were not asked: Secret %s: %w", name, err)
	}
	leaf, err := ca.Issue(pki.Leaf{Name: "kubectl-cnmsql", Organization: control.OrgInstance}, time.Now())
	if err != nil {
		return nil, err
	}
	pair, err := leaf.TLS()
	if err != nil {
		return nil, err
	}
	typed, err := typedcore.NewForConfig(s.conf)
	if err != nil {
		return nil, err
	}
	return &asker{conf: s.conf, pods: typed.RESTClient(), namespace: s.namespace, tls: &tls.Config{
		MinVersion: tls.VersionTLS13, RootCAs: ca.Pool(), Certificates: []tls.Certificate{pair}}}, nil
}

// ask returns the client, too, while ctx lasts.
func (a *asker) ask(ctx context.Context, instance string) (*control.Client, Live) {
	address, err := a.forward(ctx, instance)
	if err != nil {
		return nil, Live{Problem: err.Error()}
	}
	conf := a.tls.Clone()
	conf.ServerName = layout.InstanceHost(instance, a.namespace)
	c := control.NewClient(address, conf)
	snap, err := c.Status(ctx)
	if err != nil {
		return nil, Live{Problem: fmt.Sprintf("asking its manager through a forwarded port: %v", err)}
	}
	return c, Live{Report: &snap.Report}
}

// forward opens a local port that leads to the instance's control port until
// ctx ends.
func (a *asker) forward(ctx context.Context, pod string) (string, error) {
	dialer, err := a.dialer(pod)
	if err != nil {
		return "", err
	}
	ready := make(chan struct{})
	ports := []string{"0:" + strconv.Itoa(layout.ControlPort)}
	fw, err := portforward.NewOnAddressesForStreamingWithContext(ctx, dialer, []string{"127.0.0.1"}, ports, ready, io.Discard, io.Discard)
	if err != nil {
		return "", err
	}
	ended := make(chan error, 1)
	go func() { ended <- fw.ForwardPorts() }()
	select {
	case <-ready:
		got, err := fw.GetPorts()
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("127.0.0.1:%d", got[0].Local), nil
	case err := <-ended:
		return "", fmt.Errorf("forwarding a port to its Pod: %w", err)
	case <-ctx.Done():
		return "", fmt.Errorf("forwarding a port to its Pod: no answer within %s", liveLimit)
	}
}

// dialer prefers websockets, as kubectl does; proxies and old API servers know
// SPDY only.
func (a *asker) dialer(pod string) (httpstream.Dialer, error) {
	url := a.pods.Post().Resource("pods").Namespace(a.namespace).Name(pod).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(a.conf)
	if err != nil {
		return nil, err
	}
	old := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	tunnel, err := portforward.NewSPDYOverWebsocketDialerForStreaming(url, a.conf)
	if err != nil {
		return nil, err
	}
	return portforward.NewFallbackDialerForStreaming(tunnel, old, needsSPDY), nil
}

func needsSPDY(err error) bool {
	return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
}
