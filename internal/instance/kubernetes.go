package instance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	coordination "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/apiconn"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/layout"
)

// Kubernetes is what an instance reads and writes in the API server.
type Kubernetes interface {
	// WatchCluster calls each with the Cluster at every change, nil when it is
	// gone, until ctx ends. While the API server is away it calls nobody.
	WatchCluster(ctx context.Context, each func(*v1alpha1.Cluster))
	// Cluster reads the Cluster now.
	Cluster(ctx context.Context) (*v1alpha1.Cluster, error)
	// PublishPrimary writes who is primary into the Cluster's status, on the
	// condition that it is still the one that was read.
	PublishPrimary(ctx context.Context, instance, resourceVersion string, at time.Time) error

	// RingDoorbell changes an annotation of the instance's own Pod.
	RingDoorbell(ctx context.Context, pod, doorbellState string) error

	GetLease(ctx context.Context) (*coordination.Lease, error)
	UpdateLease(ctx context.Context, l *coordination.Lease) (*coordination.Lease, error)
}

// apiServer is Kubernetes over the network.
type apiServer struct {
	clusters, pods dynamic.ResourceInterface
	leases         coordinationclient.LeaseInterface
	name           string
	failed         func(error)
}

// inCluster uses the Pod's ServiceAccount.
func inCluster(namespace, cluster string, failed func(error), answered func(refused bool)) (*apiServer, error) {
	conf, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w", err)
	}
	return newAPIServer(conf, namespace, cluster, failed, answered)
}

// newAPIServer asks an API server. answered is called with each of its answers: whether that refuses the token.
func newAPIServer(conf *rest.Config, namespace, cluster string, failed func(error),
	answered func(refused bool)) (*apiServer, error) {
	conf.QPS, conf.Burst = 20, 40
	conf = apiconn.Bound(conf)
	conf.Wrap(func(to http.RoundTripper) http.RoundTripper { return &answerHearer{to, answered} })
	connections, err := rest.HTTPClientFor(conf)
	if err != nil {
		return nil, err
	}
	d, err := dynamic.NewForConfigAndClient(conf, connections)
	if err != nil {
		return nil, err
	}
	c, err := coordinationclient.NewForConfigAndClient(conf, connections)
	if err != nil {
		return nil, err
	}
	return &apiServer{
		clusters: d.Resource(v1alpha1.GroupVersion.WithResource("clusters")).Namespace(namespace),
		pods:     d.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(namespace),
		leases:   c.Leases(namespace),
		name:     cluster,
		failed:   failed,
	}, nil
}

// WatchCluster tries again every second while the API server is away: a change
// of role may be waiting behind its return.
func (a *apiServer) WatchCluster(ctx context.Context, each func(*v1alpha1.Cluster)) {
	retry := time.NewTicker(time.Second)
	defer retry.Stop()
	for ctx.Err() == nil {
		if err := a.watchOnce(ctx, each); err != nil && ctx.Err() == nil {
			a.failed(err)
			select {
			case <-ctx.Done():
			case <-retry.C:
			}
		}
	}
}

func (a *apiServer) watchOnce(ctx context.Context, each func(*v1alpha1.Cluster)) error {
	c, err := a.Cluster(ctx)
	if apierrors.IsNotFound(err) {
		each(nil)
		return err
	}
	if err != nil {
		return err
	}
	each(c)
	seconds := int64(300)
	w, err := a.clusters.Watch(ctx, metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector("metadata.name", a.name).String(),
		ResourceVersion: c.ResourceVersion,
		TimeoutSeconds:  &seconds,
	})
	if err != nil {
		return fmt.Errorf("watching the Cluster %s: %w", a.name, err)
	}
	defer w.Stop()
	return a.forward(ctx, w, each)
}

func (a *apiServer) forward(ctx context.Context, w watch.Interface, each func(*v1alpha1.Cluster)) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, open := <-w.ResultChan():
			if !open {
				return nil // read again
			}
			switch e.Type {
			case watch.Deleted:
				each(nil)
			case watch.Error:
				return apierrors.FromObject(e.Object)
			case watch.Added, watch.Modified:
				c, err := decode(e.Object)
				if err != nil {
					return err
				}
				each(c)
			}
		}
	}
}

func decode(o runtime.Object) (*v1alpha1.Cluster, error) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("watching the Cluster: got a %T", o)
	}
	c := &v1alpha1.Cluster{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, c); err != nil {
		return nil, fmt.Errorf("reading the Cluster %s: %w", u.GetName(), err)
	}
	if err := c.Unread(); err != nil {
		return nil, err
	}
	return c, nil
}

func (a *apiServer) Cluster(ctx context.Context) (*v1alpha1.Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, agent.CallLimit)
	defer cancel()
	u, err := a.clusters.Get(ctx, a.name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the Cluster %s: %w", a.name, err)
	}
	return decode(u)
}

func (a *apiServer) PublishPrimary(ctx context.Context, instance, resourceVersion string, at time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, agent.CallLimit)
	defer cancel()
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": resourceVersion},
		"status":   map[string]any{"currentPrimary": instance, "currentPrimaryTimestamp": metav1.NewMicroTime(at)},
	})
	if err != nil {
		return err
	}
	_, err = a.clusters.Patch(ctx, a.name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: "cnmsql-instance"}, "status")
	return err
}

func (a *apiServer) RingDoorbell(ctx context.Context, pod, doorbellState string) error {
	ctx, cancel := context.WithTimeout(ctx, agent.CallLimit)
	defer cancel()
	annotations := map[string]string{v1alpha1.AnnotationGroupObserved: doorbellState}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return err
	}
	_, err = a.pods.Patch(ctx, pod, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "cnmsql-instance"})
	return err
}

func (a *apiServer) GetLease(ctx context.Context) (*coordination.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, agent.CallLimit)
	defer cancel()
	return a.leases.Get(ctx, layout.PrimaryLease(a.name), metav1.GetOptions{})
}

func (a *apiServer) UpdateLease(ctx context.Context, l *coordination.Lease) (*coordination.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, agent.CallLimit)
	defer cancel()
	return a.leases.Update(ctx, l, metav1.UpdateOptions{FieldManager: "cnmsql-instance"})
}
