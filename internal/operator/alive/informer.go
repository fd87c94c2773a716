package alive

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
)

// NewInformer makes an informer that is up to date within seconds after an outage of the API server. As it comes, it
// tries again after ever longer pauses, up to a minute, and an operator that leads by then decides from what was
// before the outage.
func NewInformer(from cache.ListerWatcher, of runtime.Object, resync time.Duration,
	by cache.Indexers) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(persistent{cache.ToListerWatcherWithContext(from), fmt.Sprintf("%T", of)}, of,
		resync, by)
}

// persistent asks again each second while nobody answers. Any answer is given on.
type persistent struct {
	cache.ListerWatcherWithContext
	kind string
}

func (p persistent) List(o metav1.ListOptions) (runtime.Object, error) {
	return p.ListWithContext(context.Background(), o)
}

func (p persistent) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return p.WatchWithContext(context.Background(), o)
}

func (p persistent) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	return untilAnswered(ctx, p.kind, func() (runtime.Object, error) {
		return p.ListerWatcherWithContext.ListWithContext(ctx, o)
	})
}

func (p persistent) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return untilAnswered(ctx, p.kind, func() (watch.Interface, error) {
		return p.ListerWatcherWithContext.WatchWithContext(ctx, o)
	})
}

func untilAnswered[T any](ctx context.Context, kind string, ask func() (T, error)) (T, error) {
	for told := false; ; told = true {
		answer, err := ask()
		if _, unanswered := errors.AsType[*url.Error](err); !unanswered || ctx.Err() != nil {
			return answer, err
		}
		if !told {
			ctrl.Log.WithName("informer").Info("the API server does not answer; the operator asks it again each second",
				"kind", kind, "error", err.Error())
		}
		if !Pause(ctx) {
			return answer, err
		}
	}
}
