package testbed

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/resources"
	"cnmsql.co/test/writer"
)

// Get reads a Cluster.
func (b *Bed) Get(ctx context.Context, key types.NamespacedName) (*v1alpha1.Cluster, error) {
	var c v1alpha1.Cluster
	return &c, b.Client.Get(ctx, key, &c)
}

// Until waits for a Cluster to be as wished, watching it; the last one seen is
// returned, with an error that shows it when ctx ends first.
func (b *Bed) Until(ctx context.Context, key types.NamespacedName,
	wished func(*v1alpha1.Cluster) bool) (*v1alpha1.Cluster, error) {
	w, err := client.NewWithWatch(b.Config, client.Options{Scheme: b.Client.Scheme()})
	if err != nil {
		return nil, err
	}
	var last *v1alpha1.Cluster
	for ctx.Err() == nil {
		stream, err := w.Watch(ctx, &v1alpha1.ClusterList{}, client.InNamespace(key.Namespace),
			client.MatchingFields{"metadata.name": key.Name})
		if err != nil {
			break
		}
		for e := range stream.ResultChan() {
			c, ok := e.Object.(*v1alpha1.Cluster)
			if !ok || e.Type == watch.Deleted {
				continue
			}
			if last = c; wished(c) {
				stream.Stop()
				return c, nil
			}
		}
	}
	if last == nil {
		return nil, fmt.Errorf("cluster %s was not seen: %w", key, context.Cause(ctx))
	}
	return last, fmt.Errorf("cluster %s is not as wished: phase %s, primary %q, %d of %d ready: %s: %w",
		key, last.Status.Phase, last.Status.CurrentPrimary, last.Status.ReadyInstances, last.Spec.Instances,
		last.Status.PhaseReason, context.Cause(ctx))
}

// Healthy is wished of a Cluster that is all well.
func Healthy(c *v1alpha1.Cluster) bool {
	return c.Status.Phase == "Healthy" && c.Status.ObservedGeneration == c.Generation &&
		c.Status.ReadyInstances == c.Spec.Instances
}

// Endpoint is how an account logs in through a Service.
type Endpoint struct {
	Addr, User, Password, Database string
	TLS                            *tls.Config
}

// Endpoint of the application's account through one of the cluster's Services
// ("rw", "ro", "r"), by its ClusterIP.
func (b *Bed) Endpoint(ctx context.Context, key types.NamespacedName, service string) (Endpoint, error) {
	var app, ca corev1.Secret
	var svc corev1.Service
	get := func(name string, into client.Object) error {
		return b.Client.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: name}, into)
	}
	names := resources.Names(key.Name)
	if err := get(names.AppSecret(), &app); err != nil {
		return Endpoint{}, err
	}
	if err := get(names.CASecret(), &ca); err != nil {
		return Endpoint{}, err
	}
	if err := get(key.Name+"-"+service, &svc); err != nil {
		return Endpoint{}, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca.Data[resources.KeyCA])
	return Endpoint{
		Addr: net.JoinHostPort(svc.Spec.ClusterIP, "3306"), User: string(app.Data["username"]),
		Password: string(app.Data["password"]),
		Database: string(app.Data["dbname"]), TLS: &tls.Config{RootCAs: pool, ServerName: svc.Name,
			MinVersion: tls.VersionTLS12},
	}, nil
}

// InstanceEndpoint leads to one instance, past every Service.
func (b *Bed) InstanceEndpoint(ctx context.Context, key types.NamespacedName, instance string) (Endpoint, error) {
	e, err := b.Endpoint(ctx, key, "rw")
	if err != nil {
		return Endpoint{}, err
	}
	var pod corev1.Pod
	if err := b.Client.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: instance}, &pod); err != nil {
		return Endpoint{}, err
	}
	e.Addr = net.JoinHostPort(pod.Status.PodIP, "3306")
	return e, nil
}

// Writer makes a writer to the endpoint.
func (e Endpoint) Writer() *writer.Writer { return e.WriterOn(0) }

// WriterOn makes a writer on that many connections; 0 for the writer's default.
func (e Endpoint) WriterOn(connections int) *writer.Writer {
	c := e.writerConfig()
	c.Connections = connections
	return writer.New(c)
}

// WriterAt makes a writer with the default count of connections, each of which writes once in every interval.
func (e Endpoint) WriterAt(interval time.Duration) *writer.Writer {
	c := e.writerConfig()
	c.Interval = interval
	return writer.New(c)
}

// WriterAtFullSpeed makes a writer on that many connections, each of which writes again as soon
// as it has its answer.
func (e Endpoint) WriterAtFullSpeed(connections int) *writer.Writer {
	c := e.writerConfig()
	c.Connections, c.Interval = connections, -1
	return writer.New(c)
}

func (e Endpoint) writerConfig() writer.Config {
	return writer.Config{Addr: e.Addr, User: e.User, Password: e.Password, TLS: e.TLS,
		Table: e.Database + ".writer_rows"}
}

// Open makes a pool of connections to the endpoint.
func (e Endpoint) Open() (*sql.DB, error) { return writer.Open(e.writerConfig()) }

// OpenWithin is Open for clients that wait for an answer no longer than limit.
func (e Endpoint) OpenWithin(limit time.Duration) (*sql.DB, error) {
	c := mysql.NewConfig()
	c.Net, c.Addr, c.User, c.Passwd, c.TLS = "tcp", e.Addr, e.User, e.Password, e.TLS
	c.Timeout, c.ReadTimeout, c.WriteTimeout, c.Logger = limit, limit, limit, &mysql.NopLogger{}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// KillMysqld sends SIGKILL to the mysqld of an instance; the local Kubernetes'
// containers are processes of this machine.
func (b *Bed) KillMysqld(ctx context.Context, key types.NamespacedName, instance string) (time.Time, error) {
	return b.SignalMysqld(ctx, key, instance, syscall.SIGKILL)
}

// SignalMysqld sends a signal to the mysqld of an instance, and returns when.
func (b *Bed) SignalMysqld(ctx context.Context, key types.NamespacedName, instance string,
	sig syscall.Signal) (time.Time, error) {
	pid, err := b.MysqldPID(ctx, key, instance)
	if err != nil {
		return time.Time{}, err
	}
	if err := syscall.Kill(pid, sig); err != nil {
		return time.Time{}, fmt.Errorf("%v to mysqld of %s (pid %d): %w", sig, instance, pid, err)
	}
	return time.Now(), nil
}

// MysqldPID is the process id of an instance's mysqld on this machine.
func (b *Bed) MysqldPID(ctx context.Context, key types.NamespacedName, instance string) (int, error) {
	return b.PID(ctx, key, instance, "mysqld")
}

// parentOf is the parent of a process, given as its directory in /proc; 0 when it has ended.
func parentOf(proc string) int {
	status, _ := os.ReadFile(filepath.Join(proc, "status"))
	_, rest, _ := strings.Cut(string(status), "\nPPid:")
	line, _, _ := strings.Cut(rest, "\n")
	parent, _ := strconv.Atoi(strings.TrimSpace(line))
	return parent
}

// PID is the process id on this machine of the program of that name in an
// instance's Pod: "mysqld", or "cnmsql" for its manager.
func (b *Bed) PID(ctx context.Context, key types.NamespacedName, instance, program string) (int, error) {
	var pod corev1.Pod
	if err := b.Client.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: instance}, &pod); err != nil {
		return 0, err
	}
	procs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	parents := map[int]int{}
	for _, proc := range procs {
		comm, _ := os.ReadFile(filepath.Join(proc, "comm"))
		groups, _ := os.ReadFile(filepath.Join(proc, "cgroup"))
		if strings.TrimSpace(string(comm)) == program && strings.Contains(string(groups), "pod"+string(pod.UID)) {
			pid, _ := strconv.Atoi(filepath.Base(proc))
			if parent := parentOf(proc); parent != 0 {
				parents[pid] = parent
			}
		}
	}
	for pid, parent := range parents {
		if _, child := parents[parent]; !child { // a manager tries another binary before it gives way to it
			return pid, nil
		}
	}
	return 0, fmt.Errorf("no process %s of Pod %s/%s (%s) runs on this machine", program,
		pod.Namespace, pod.Name, pod.UID)
}
