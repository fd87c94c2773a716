package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
)

// record notes when what can be watched has changed. The nodes of the local
// Kubernetes have this machine's clock, so that the moments of the managers' logs
// can stand beside those of the watches.
type record struct {
	begun time.Time
	stop  context.CancelFunc

	mu    sync.Mutex
	first map[string]time.Time // when a step was seen first
	epoch int64
	addrs string
	rw    string
}

// record starts to watch.
func (s *stage) record(ctx context.Context) *record {
	r := &record{begun: time.Now(), first: map[string]time.Time{}}
	ctx, r.stop = context.WithCancel(ctx)
	for _, list := range []client.ObjectList{&v1alpha1.ClusterList{}, &discovery.EndpointSliceList{},
		&corev1.ServiceList{}} {
		w, err := client.NewWithWatch(s.bed.Config, client.Options{Scheme: s.bed.Client.Scheme()})
		if err != nil {
			continue // only the steps are missing
		}
		stream, err := w.Watch(ctx, list, client.InNamespace(key.Namespace))
		if err != nil {
			continue
		}
		go r.follow(stream)
	}
	return r
}

func (r *record) follow(stream watch.Interface) {
	for e := range stream.ResultChan() {
		at := time.Now()
		r.mu.Lock()
		switch o := e.Object.(type) {
		case *v1alpha1.Cluster:
			r.cluster(o, at)
		case *corev1.Service:
			if o.Name == key.Name+"-rw" {
				r.rw = r.changed("service", r.rw, fmt.Sprint(o.Spec.Selector), at)
			}
		case *discovery.EndpointSlice:
			if o.Labels[discovery.LabelServiceName] == key.Name+"-rw" && len(o.Endpoints) > 0 {
				r.addrs = r.changed("endpoints", r.addrs, strings.Join(o.Endpoints[0].Addresses, ","), at)
			}
		}
		r.mu.Unlock()
	}
}

// changed notes the first change from a value that was known.
func (r *record) changed(step, before, now string, at time.Time) string {
	if before != "" && before != now {
		r.note(step, at)
	}
	return now
}

func (r *record) cluster(c *v1alpha1.Cluster, at time.Time) {
	if p := c.Status.Promotion; p != nil {
		if r.epoch != 0 && p.Epoch > r.epoch {
			r.note("granted", at)
		}
		r.epoch = p.Epoch
	}
	if op := c.Status.Operation; op != nil && op.Step != "Promote" { // that is the grant
		r.note("step "+op.Step, at)
	}
}

// note keeps the first time; the mutex is held.
func (r *record) note(step string, at time.Time) {
	if _, known := r.first[step]; !known {
		r.first[step] = at
	}
}

// logged are the lines of a manager's log that are steps.
var logged = []struct{ starts, step string }{
	{"the kubelet asks this manager to stop", "manager asked to stop"},
	{"mysqld accepts no more writes", "old primary read-only"},
	{"this instance is the primary, and takes writes", "writable"},
	{"take the Lease", "takes the lease"},
	{"become primary", "opens"},
}

// steps ends the watch and tells what was seen between a fault and the first
// acknowledged write after it, in seconds since the fault.
func (r *record) steps(ctx context.Context, s *stage, at, acked time.Time) []step {
	r.stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	var pods corev1.PodList
	if err := s.bed.Client.List(ctx, &pods, client.InNamespace(key.Namespace),
		client.HasLabels{v1alpha1.LabelInstance}); err == nil {
		for i := range pods.Items {
			r.readLog(ctx, s, &pods.Items[i], at)
		}
	}
	r.note("first acknowledged write", acked)
	var out []step
	for name, when := range r.first {
		if d := when.Sub(at); d >= 0 && !when.After(acked) {
			out = append(out, step{name, secondsOf(d)})
		}
	}
	slices.SortFunc(out, func(a, b step) int { return cmp.Compare(a.Seconds, b.Seconds) })
	if s.trace {
		for _, st := range out {
			say("    %6.3f  %s", st.Seconds, st.Name)
		}
	}
	return out
}

// readLog looks for steps in what an instance's manager wrote since the fault.
func (r *record) readLog(ctx context.Context, s *stage, pod *corev1.Pod, since time.Time) {
	typed, err := typedcore.NewForConfig(s.bed.Config)
	if err != nil {
		return
	}
	from := metav1.NewTime(since)
	log, err := typed.Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: "mysql",
		SinceTime: &from}).Stream(ctx)
	if err != nil {
		return
	}
	defer func() { _ = log.Close() }()
	for lines := bufio.NewScanner(log); lines.Scan(); {
		var line struct {
			TS          time.Time
			Msg, Action string
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil || line.TS.Before(since) {
			continue
		}
		for _, l := range logged {
			if strings.HasPrefix(line.Msg, l.starts) || strings.HasPrefix(line.Action, l.starts) {
				r.note(l.step, line.TS)
			}
		}
	}
}
