package verify

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/backups"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/layout"
)

// askLimit bounds one question: the instance answers at once, and checks beside.
const askLimit = 10 * time.Second

// Asker asks an instance of a Cluster.
type Asker interface {
	// Check has the instance check its tables, unless it does already, and returns how far
	// that is.
	Check(ctx context.Context, c *v1alpha1.Cluster, instance string, o control.CheckOrder) (control.CheckReport, error)
}

// Instances asks over the control API, as the operator.
type Instances struct{ Client client.Reader }

// Check is Asker's.
func (i Instances) Check(ctx context.Context, c *v1alpha1.Cluster, instance string, o control.CheckOrder,
) (control.CheckReport, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	to, err := i.open(ctx, c, instance)
	if err != nil {
		return control.CheckReport{}, err
	}
	defer to.Close()
	return to.Check(ctx, o)
}

// open prepares to speak with an instance. Questions are few and far between: no connection
// is kept.
func (i Instances) open(ctx context.Context, c *v1alpha1.Cluster, instance string) (*control.Client, error) {
	var pod corev1.Pod
	if err := i.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: instance}, &pod); err != nil {
		return nil, fmt.Errorf("look for the Pod %s: %w", instance, err)
	}
	if pod.Status.PodIP == "" {
		return nil, fmt.Errorf("the Pod %s has no address yet", instance)
	}
	ca, err := backups.Authority(ctx, i.Client, c)
	if err != nil {
		return nil, err
	}
	conf, err := ca.OperatorTLS(time.Now())
	if err != nil {
		return nil, err
	}
	conf.ServerName = layout.InstanceHost(instance, c.Namespace)
	return control.NewClient(net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(layout.ControlPort)), conf), nil
}
