package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/layout"
	"cnmsql.co/internal/resources"
)

// fleet is all instances of all clusters: one process plays the managers of them all, and
// serves the control API of each at an address of its own in 127.0.0.0/8.
type fleet struct {
	kube *kube

	mu        sync.Mutex
	instances map[types.NamespacedName]*instance
	at        map[string]*instance
	// silent are the nodes that are cut off: what runs there is not heard any more, until the
	// channel is closed.
	silent map[string]chan struct{}
	// moved tells of each cluster when its -rw Service was pointed at whom last.
	moved map[types.NamespacedName]routed
	// healthy are the Clusters that are.
	healthy map[types.NamespacedName]bool
}

// routed is whom a -rw Service leads to, and since when.
type routed struct {
	to string
	at time.Time
}

func newFleet(k *kube) *fleet {
	return &fleet{kube: k, instances: map[types.NamespacedName]*instance{}, at: map[string]*instance{},
		silent: map[string]chan struct{}{}, moved: map[types.NamespacedName]routed{},
		healthy: map[types.NamespacedName]bool{}}
}

// address is the n-th of those that instances have.
func address(n int) string { return fmt.Sprintf("127.%d.%d.%d", 10+n/(200*200), n/200%200, 1+n%200) }

// of is the instance whose Pod this is; it is made when its first Pod is seen.
func (f *fleet) of(pod *corev1.Pod) *instance {
	key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	f.mu.Lock()
	defer f.mu.Unlock()
	in := f.instances[key]
	if in == nil {
		cluster := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[v1alpha1.LabelCluster]}
		in = newInstance(f, key, cluster, address(len(f.instances)))
		f.instances[key], f.at[in.address] = in, in
	}
	return in
}

func (f *fleet) find(key types.NamespacedName) *instance {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.instances[key]
}

// members are the instances of a cluster.
func (f *fleet) members(cluster types.NamespacedName) (all []*instance) {
	for n := 1; n <= instances; n++ {
		if in := f.find(types.NamespacedName{Namespace: cluster.Namespace,
			Name: resources.InstanceName(cluster.Name, n)}); in != nil {
			all = append(all, in)
		}
	}
	return all
}

func (f *fleet) isSilent(node string) bool { return f.silence(node) != nil }

// silence ends with its channel, nil where there is none.
func (f *fleet) silence(node string) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.silent[node]
}

// cut cuts a node off, until mend is called.
func (f *fleet) cut(node string) (mend func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	over := make(chan struct{})
	f.silent[node] = over
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.silent, node)
		close(over)
	}
}

// sees hands a Cluster to those that watch it.
func (f *fleet) sees(c *v1alpha1.Cluster) {
	f.notes(c)
	for _, in := range f.members(types.NamespacedName{Namespace: c.Namespace, Name: c.Name}) {
		in.sees(c)
	}
}

func (f *fleet) notes(c *v1alpha1.Cluster) {
	key := types.NamespacedName{Namespace: c.Namespace, Name: c.Name}
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.Status.Phase == string(core.PhaseHealthy) && c.Status.ReadyInstances == instances {
		f.healthy[key] = true
	} else {
		delete(f.healthy, key)
	}
}

func (f *fleet) countHealthy() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.healthy)
}

// showAgain hands all Clusters to their instances once more.
func (f *fleet) showAgain(ctx context.Context) error {
	var all v1alpha1.ClusterList
	if err := f.kube.seen.List(ctx, &all); err != nil {
		return err
	}
	for i := range all.Items {
		f.sees(&all.Items[i])
	}
	return nil
}

// routes notes whom a -rw Service leads to.
func (f *fleet) routes(s *corev1.Service) {
	cluster := types.NamespacedName{Namespace: s.Namespace, Name: s.Labels[v1alpha1.LabelCluster]}
	if cluster.Name == "" || s.Name != resources.Names(cluster.Name).ReadWrite() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if to := resources.RoutedTo(s); f.moved[cluster].to != to {
		f.moved[cluster] = routed{to, time.Now()}
	}
}

func (f *fleet) routed(cluster types.NamespacedName) routed {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.moved[cluster]
}

// heard is how many status streams stand.
func (f *fleet) heard() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, in := range f.instances {
		n += int(min(in.listeners.Load(), 1))
	}
	return n
}

type localAddress struct{}

// serve serves the control API of all instances until ctx ends.
func (f *fleet) serve(ctx context.Context) error {
	listener, err := net.Listen("tcp", fmt.Sprintf("0.0.0.0:%d", layout.ControlPort))
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: http.HandlerFunc(f.answer), ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: log.New(io.Discard, "", 0),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, localAddress{}, host(c.LocalAddr()))
		},
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"},
			GetConfigForClient: f.configure},
	}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ServeTLS(cuttable{listener, f}, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// cuttable are connections to instances, on which nothing comes or goes while the node of
// the instance is cut off.
type cuttable struct {
	net.Listener
	fleet *fleet
}

// Accept gives a connection that stands still while the instance's node is cut off.
func (l cuttable) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{c, l.fleet}, nil
}

type conn struct {
	net.Conn
	fleet *fleet
}

// Read gives what came only once the node is not cut off.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.await()
	return n, err
}

// Write writes only once the node is not cut off.
func (c *conn) Write(p []byte) (int, error) {
	c.await()
	return c.Conn.Write(p)
}

func (c *conn) await() {
	in := c.fleet.calledAt(host(c.LocalAddr()))
	if in == nil {
		return
	}
	if silence := c.fleet.silence(in.node()); silence != nil {
		<-silence
	}
}

func host(a net.Addr) string {
	address, _, _ := strings.Cut(a.String(), ":")
	return address
}

// configure is the TLS of the instance whose address was called. The product's own
// configuration asks for a client's certificate.
func (f *fleet) configure(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	in := f.calledAt(host(hello.Conn.LocalAddr()))
	if in == nil {
		return nil, errors.New("nobody has this address")
	}
	leaf, pool, err := in.identity(hello.Context())
	if err != nil {
		return nil, err
	}
	return control.ServerTLS(func() (*tls.Certificate, error) { return leaf, nil },
		func() (*x509.CertPool, error) { return pool, nil }).GetConfigForClient(hello)
}

func (f *fleet) calledAt(address string) *instance {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at[address]
}

func (f *fleet) answer(w http.ResponseWriter, r *http.Request) {
	called, _ := r.Context().Value(localAddress{}).(string)
	in := f.calledAt(called)
	if in == nil {
		http.Error(w, "nobody has this address", http.StatusNotFound)
		return
	}
	in.handler.ServeHTTP(w, r)
}
