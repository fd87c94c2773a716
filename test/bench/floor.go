package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/layout"
)

// floor is what Kubernetes itself takes from a write to a Service until a new
// connection to its ClusterIP reaches another Pod, in seconds. No MySQL takes part.
type floor struct {
	Runs int `json:"runs"`
	// Quiet: no endpoint had changed for three seconds before.
	Quiet [3]float64 `json:"quiet"`
	// Busy: the endpoints of another Service had changed a tenth of a second before,
	// and kube-proxy holds a second change back.
	Busy [3]float64 `json:"busy"`
}

// floorService selects one instance by its name, as -rw does, and leads to its
// manager's port, whose certificate tells who answers.
func floorService(name, instance string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: key.Namespace},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{v1alpha1.LabelCluster: key.Name, v1alpha1.LabelInstance: instance},
			Ports: []corev1.ServicePort{{Name: "control", Port: layout.ControlPort,
				TargetPort: intstr.FromInt32(layout.ControlPort)}},
		},
	}
}

// measureFloor moves a Service to and fro between two instances.
func (s *stage) measureFloor(ctx context.Context, runs int) (*floor, error) {
	c, err := s.bed.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	names := c.Status.InstanceNames[:2]
	services := []*corev1.Service{floorService("floor", names[0]), floorService("floor-other", names[0])}
	for _, svc := range services {
		if err := s.bed.Client.Create(ctx, svc); err != nil {
			return nil, err
		}
		defer func() { _ = s.bed.Client.Delete(context.WithoutCancel(ctx), svc) }()
	}
	addr := net.JoinHostPort(services[0].Spec.ClusterIP, fmt.Sprint(layout.ControlPort))
	if _, err := reaches(ctx, addr, names[0]); err != nil {
		return nil, err
	}
	out := &floor{Runs: runs}
	var quiet, hurried []float64
	for range runs {
		for _, busy := range []bool{false, true} {
			slices.Reverse(names)
			took, err := s.move(ctx, addr, names[0], services, busy)
			if err != nil {
				return nil, err
			}
			if busy {
				hurried = append(hurried, took)
			} else {
				quiet = append(quiet, took)
			}
		}
	}
	out.Quiet = [3]float64{slices.Min(quiet), median(quiet), slices.Max(quiet)}
	out.Busy = [3]float64{slices.Min(hurried), median(hurried), slices.Max(hurried)}
	return out, nil
}

// move leads the first Service to an instance, and tells how many seconds it took. The
// second is moved, too: right before if the machine is to be busy with it, else after.
func (s *stage) move(ctx context.Context, addr, to string, services []*corev1.Service, busy bool) (float64, error) {
	if err := pause(ctx, calm); err != nil {
		return 0, err
	}
	if busy {
		if err := s.selects(ctx, services[1], to); err != nil {
			return 0, err
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return 0, err
		}
	}
	begun := time.Now()
	if err := s.selects(ctx, services[0], to); err != nil {
		return 0, err
	}
	at, err := reaches(ctx, addr, to)
	if err == nil && !busy {
		err = s.selects(ctx, services[1], to)
	}
	return secondsOf(at.Sub(begun)), err
}

func (s *stage) selects(ctx context.Context, svc *corev1.Service, instance string) error {
	patch := fmt.Appendf(nil, `{"spec":{"selector":{%q:%q}}}`, v1alpha1.LabelInstance, instance)
	return s.bed.Client.Patch(ctx, svc.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
}

// reaches connects until an instance answers, and tells when it did.
func reaches(ctx context.Context, addr, instance string) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		if host, err := answers(ctx, addr); err == nil && host == instance {
			return time.Now(), nil
		}
		if err := pause(ctx, time.Millisecond); err != nil {
			break
		}
	}
	return time.Time{}, fmt.Errorf("%s does not lead to %s: %w", addr, instance, context.Cause(ctx))
}

// answers tells whose certificate is shown at an address. Nothing is sent there.
func answers(ctx context.Context, addr string) (string, error) {
	d := net.Dialer{Timeout: 100 * time.Millisecond}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	secure := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13})
	if err := secure.HandshakeContext(ctx); err != nil {
		return "", err
	}
	return secure.ConnectionState().PeerCertificates[0].Subject.CommonName, nil
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
