package apiconn

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// promptly bounds a request of which an API server that is well thinks for milliseconds. One
	// that is stuck, or says to come again later, is asked anew, by way of another connection and
	// perhaps of another API server: client-go itself would wait for as long as it was told to,
	// and a failover with it.
	promptly = 5 * time.Second
	// admitted bounds a request that makes a Pod or a claim, at which webhooks look: each of them
	// may think for half a minute.
	admitted = 35 * time.Second
)

// Prompt returns a client whose requests have a deadline each.
func Prompt(c client.Client) client.Client { return prompt{c} }

// PromptReader is that of a reader.
func PromptReader(r client.Reader) client.Reader { return promptReader{r} }

type promptReader struct{ client.Reader }

func (r promptReader) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return within(ctx, promptly, func(ctx context.Context) error { return r.Reader.Get(ctx, key, o, opts...) })
}

func (r promptReader) List(ctx context.Context, all client.ObjectList, opts ...client.ListOption) error {
	return within(ctx, promptly, func(ctx context.Context) error { return r.Reader.List(ctx, all, opts...) })
}

type prompt struct{ client.Client }

func (c prompt) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return promptReader{c.Client}.Get(ctx, key, o, opts...)
}

func (c prompt) List(ctx context.Context, all client.ObjectList, opts ...client.ListOption) error {
	return promptReader{c.Client}.List(ctx, all, opts...)
}

func (c prompt) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return within(ctx, limitOf(o), func(ctx context.Context) error { return c.Client.Apply(ctx, o, opts...) })
}

func (c prompt) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	return within(ctx, limitOf(o), func(ctx context.Context) error { return c.Client.Create(ctx, o, opts...) })
}

func (c prompt) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	return within(ctx, limitOf(o), func(ctx context.Context) error { return c.Client.Delete(ctx, o, opts...) })
}

func (c prompt) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	return within(ctx, promptly, func(ctx context.Context) error { return c.Client.Update(ctx, o, opts...) })
}

func (c prompt) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	return within(ctx, promptly, func(ctx context.Context) error { return c.Client.Patch(ctx, o, p, opts...) })
}

func (c prompt) Status() client.SubResourceWriter { return c.SubResource("status") }

func (c prompt) SubResource(name string) client.SubResourceClient {
	return promptSubResource{c.Client.SubResource(name)}
}

type promptSubResource struct{ client.SubResourceClient }

func (s promptSubResource) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	return within(ctx, promptly, func(ctx context.Context) error {
		return s.SubResourceClient.Update(ctx, o, opts...)
	})
}

func (s promptSubResource) Patch(ctx context.Context, o client.Object, p client.Patch,
	opts ...client.SubResourcePatchOption) error {
	return within(ctx, promptly, func(ctx context.Context) error {
		return s.SubResourceClient.Patch(ctx, o, p, opts...)
	})
}

// limitOf is how long a request that makes or removes an object may take.
func limitOf(o any) time.Duration {
	switch o := o.(type) {
	case *corev1.Pod, *corev1.PersistentVolumeClaim:
		return admitted
	case interface{ GetKind() string }:
		if kind := o.GetKind(); kind == "Pod" || kind == "PersistentVolumeClaim" {
			return admitted
		}
	}
	return promptly
}

func within(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return do(ctx)
}
