package operator

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
)

func TestWhatIsRareIsNeverHeldBack(t *testing.T) {
	b, now := &bucket{most: 3, perSecond: 2}, time.Unix(0, 0)
	for range 100 {
		if wait := b.take(now); wait != 0 {
			t.Fatalf("held back for %s", wait)
		}
		now = now.Add(500 * time.Millisecond)
	}
	for i := range 3 {
		wait := b.take(now)
		if i == 0 && wait != 0 {
			t.Errorf("a burst is held back for %s", wait)
		}
	}
	if wait := b.take(now); wait <= 0 || wait > 500*time.Millisecond {
		t.Errorf("more than may be waits %s", wait)
	}
}

// An instance whose word changes a thousand times a second wakes its cluster at once, then
// twenty times a second, and the last change is never lost.
func TestAFlappingInstanceWakesItsClusterTwentyTimesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var woken atomic.Int64
		l := newStreamLimits()
		for range 10_000 {
			l.wake(t.Context(), func() { woken.Add(1) })
			if woken.Load() == 0 {
				t.Fatal("the first does not wake at once")
			}
			<-time.After(time.Millisecond)
		}
		if n := woken.Load(); n > wakesAtOnce+10*wakesPerSecond+1 || n < 10*wakesPerSecond/2 {
			t.Errorf("woken %d times in 10 s", n)
		}
		before := woken.Load()
		l.wake(t.Context(), func() { woken.Add(1) })
		<-time.After(time.Second)
		if woken.Load() == before {
			t.Error("the last change wakes nobody")
		}
	})
}

func TestAStreamIsReadNoFasterThanItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, begun := newStreamLimits(), time.Now()
		for range heardAtOnce {
			l.read(t.Context())
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("a burst took %s", took)
		}
		for range 500 {
			l.read(t.Context())
		}
		if took := time.Since(begun); took < 5*time.Second {
			t.Errorf("600 snapshots were read in %s", took)
		}
	})
}

// Orders that are never answered hold a worker for the patience of one, and once.
func TestSlowInstancesLeaveTheWorkersToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, begun := newOrders(), time.Now()
		var over atomic.Int64
		slow := func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(core.OrderLimit):
				return errors.New("no answer")
			}
		}
		for range 12 {
			if err := o.give(t.Context(), "demote c-1", slow, func() { over.Add(1) }); !errors.Is(err, errUnderWay) {
				t.Errorf("got %v", err)
			}
		}
		if took := time.Since(begun); took > 2*orderPatience {
			t.Errorf("twelve passes took %s", took)
		}
		if err := o.give(t.Context(), "demote c-2", func(context.Context) error {
			return nil
		}, func() { t.Error("told twice") }); err != nil {
			t.Errorf("another order: %v", err)
		}
		<-time.After(core.OrderLimit)
		synctest.Wait()
		if n := over.Load(); n != 1 {
			t.Errorf("the cluster is woken %d times after it", n)
		}
		if err := o.give(t.Context(), "demote c-1", func(context.Context) error { return nil }, func() {}); err != nil {
			t.Errorf("it cannot be given again: %v", err)
		}
	})
}

// An instance that takes the connection and never answers, asked for a report and given an
// order: what is under way holds no worker, is not begun twice, and wakes the cluster when it
// is over.
func TestWhoNeverReportsLeavesTheWorkerToOthers(t *testing.T) {
	for name, order := range map[string]control.Order{"a report": nil, "an order": control.Demote{}} {
		t.Run(name, func(t *testing.T) {
			silent, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = silent.Close() }()
			cluster := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
			key := types.NamespacedName{Namespace: "ns", Name: "c"}
			woken := make(chan types.NamespacedName, 10)
			s := NewStreams(t.Context(), logr.Discard(), func(c types.NamespacedName) { woken <- c })
			s.put(types.NamespacedName{Namespace: "ns", Name: "c-1"}, &stream{
				cluster: key, limits: newStreamLimits(),
				client: control.NewClient(silent.Addr().String(), &tls.Config{})})
			a := &actor{streams: s, orders: newOrders()}
			for range 2 {
				if err := a.command(cluster, "c-1", order); !errors.Is(err, errUnderWay) {
					t.Fatalf("got %v", err)
				}
			}
			conn, err := silent.Accept()
			if err != nil {
				t.Fatal(err)
			}
			if len(woken) > 0 {
				t.Error("the cluster is woken before there is anything to see")
			}
			_ = conn.Close() // which ends what is under way
			if got := <-woken; got != key {
				t.Errorf("%s is woken", got)
			}
			if err := a.command(cluster, "c-2", order); !errors.Is(err, errNoStream) {
				t.Errorf("one that was never reached: %v", err)
			}
		})
	}
}

func TestAStatusThatFlapsIsWrittenNoMoreThanItsLimit(t *testing.T) {
	w, cluster := newStatusWrites(), types.NamespacedName{Namespace: "ns", Name: "c"}
	written := 0
	for range 1000 {
		if w.take(cluster) == nil {
			written++
		}
	}
	if written < writesAtOnce || written > writesAtOnce+writesPerSecond {
		t.Errorf("written %d times", written)
	}
	if err := w.take(types.NamespacedName{Namespace: "ns", Name: "d"}); err != nil {
		t.Errorf("another cluster waits for it: %v", err)
	}
	w.forget(cluster)
	if err := w.take(cluster); err != nil {
		t.Errorf("one that was recreated: %v", err)
	}
}
