package alive

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// away is an API server that nobody reaches until a moment.
type away struct {
	until time.Time
	then  error
	asked int
}

func (a *away) answer() error {
	a.asked++
	if time.Now().Before(a.until) {
		return &url.Error{Op: "Get", URL: "/", Err: errors.New("connection refused")}
	}
	return a.then
}

func (a *away) List(metav1.ListOptions) (runtime.Object, error) {
	return &corev1.PodList{}, a.answer()
}

func (a *away) Watch(metav1.ListOptions) (watch.Interface, error) {
	return watch.NewFake(), a.answer()
}

// TestAnInformerAsksEachSecondInAnOutage holds for listing and watching, and gives each answer on, also a refusal.
func TestAnInformerAsksEachSecondInAnOutage(t *testing.T) {
	refusal := errors.New("too old")
	for name, ask := range map[string]func(context.Context, persistent) error{
		"list": func(ctx context.Context, p persistent) error {
			_, err := p.ListWithContext(ctx, metav1.ListOptions{})
			return err
		},
		"watch": func(ctx context.Context, p persistent) error {
			_, err := p.WatchWithContext(ctx, metav1.ListOptions{})
			return err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			a := &away{until: begun.Add(10 * time.Minute), then: refusal}
			err := ask(t.Context(), persistent{cache.ToListerWatcherWithContext(a), name})
			if late := time.Since(a.until); !errors.Is(err, refusal) || late > tryEvery || a.asked != 601 {
				t.Errorf("%s: answered %s after the outage, asked %d times: %v", name, late, a.asked, err)
			}
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			a.until = time.Now().Add(time.Hour)
			if err := ask(ctx, persistent{cache.ToListerWatcherWithContext(a), name}); err == nil || ctx.Err() == nil {
				t.Errorf("%s: who is to end is given %v", name, err)
			}
		})
	}
}
