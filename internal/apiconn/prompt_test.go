package apiconn

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mute answers nothing.
type mute struct{ client.Client }

func (mute) wait(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func (m mute) Get(ctx context.Context, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return m.wait(ctx)
}
func (m mute) List(ctx context.Context, _ client.ObjectList, _ ...client.ListOption) error {
	return m.wait(ctx)
}
func (m mute) Apply(ctx context.Context, _ runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	return m.wait(ctx)
}
func (m mute) Create(ctx context.Context, _ client.Object, _ ...client.CreateOption) error {
	return m.wait(ctx)
}
func (m mute) Update(ctx context.Context, _ client.Object, _ ...client.UpdateOption) error {
	return m.wait(ctx)
}
func (m mute) SubResource(string) client.SubResourceClient { return muteStatus{mute: m} }

type muteStatus struct {
	client.SubResourceClient
	mute mute
}

func (s muteStatus) Update(ctx context.Context, _ client.Object, _ ...client.SubResourceUpdateOption) error {
	return s.mute.wait(ctx)
}

func TestNoRequestWaitsForEver(t *testing.T) {
	c, pod, service := Prompt(mute{}), &corev1.Pod{}, &corev1.Service{}
	kind := func(kind string) runtime.ApplyConfiguration {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetKind(kind)
		return client.ApplyConfigurationFromUnstructured(u)
	}
	for name, of := range map[string]struct {
		want time.Duration
		ask  func(context.Context) error
	}{
		"get":             {promptly, func(ctx context.Context) error { return c.Get(ctx, client.ObjectKey{}, pod) }},
		"list":            {promptly, func(ctx context.Context) error { return c.List(ctx, &corev1.PodList{}) }},
		"update":          {promptly, func(ctx context.Context) error { return c.Update(ctx, service) }},
		"status":          {promptly, func(ctx context.Context) error { return c.Status().Update(ctx, service) }},
		"apply a Service": {promptly, func(ctx context.Context) error { return c.Apply(ctx, kind("Service")) }},
		"apply a claim": {admitted, func(ctx context.Context) error {
			return c.Apply(ctx, kind("PersistentVolumeClaim"))
		}},
		"create a Pod": {admitted, func(ctx context.Context) error { return c.Create(ctx, pod) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				err := of.ask(t.Context())
				if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || took != of.want {
					t.Errorf("%v after %s, want %s", err, took, of.want)
				}
			})
		})
	}
}
