package operator

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
)

const (
	// answerNews is how long a late answer is one to whoever asks again, whom it has woken. What
	// was made may be gone after that, and is to be made once more.
	answerNews = 5 * time.Second
	// answerLife is how long it is known why a request failed.
	answerLife = time.Minute
)

// requests are those to the API server that take long if it asks webhooks which take long. A
// look at a cluster waits for one as long as for an order, and no longer: the primary may fail
// meanwhile. What is answered later is told to whoever asks for the same again.
//
// Such a request is one call, and all that was to be looked at before it was. That it is
// carried out while the next looks are taken is then what it is to an operator that starts
// again: something that was asked for and may be carried out yet.
type requests struct {
	underWay *orders

	mu      sync.Mutex
	answers map[string]answer
}

// answer is what became of a request.
type answer struct {
	err error
	at  time.Time
	// isNew: nobody was told.
	isNew bool
}

// underWayError is the error when a request was made and is not answered. former is why an earlier
// one failed, if one did not long ago.
type underWayError struct{ former error }

// Error says only that the request is under way; why an earlier one failed is in former.
func (e *underWayError) Error() string { return errUnderWay.Error() }

// request is one to make something of a Cluster, by its words.
func (a *actor) request(c *v1alpha1.Cluster, words string, do func(context.Context) error) error {
	cluster := client.ObjectKeyFromObject(c)
	return a.requests.make(a.streams.ctx, requestName(c, words), do, func() { a.streams.wake(cluster) })
}

// requestName tells apart those of Clusters of one name.
func requestName(c *v1alpha1.Cluster, words string) string { return string(c.UID) + " " + words }

func newRequests() *requests { return &requests{underWay: newOrders(), answers: map[string]answer{}} }

// make makes a request, the same only once at a time, and returns the answer to it, or to the
// former one if nobody was told that. It is an *underWayError when there is none yet; over is
// called when there is one after that.
func (r *requests) make(ctx context.Context, name string, do func(context.Context) error, over func()) error {
	if is, err := r.former(name); is {
		return err
	}
	err := r.underWay.give(ctx, name, func(ctx context.Context) error {
		err := do(ctx)
		r.note(name, err)
		return err
	}, over)
	if errors.Is(err, errUnderWay) {
		return r.waiting(name)
	}
	r.take(name)
	return err
}

// former tells what became of an earlier request, once, or that it is under way; false when
// there is nothing to tell.
func (r *requests) former(name string) (is bool, err error) {
	if r.isUnderWay(name) {
		return true, r.waiting(name)
	}
	return r.take(name)
}

func (r *requests) isUnderWay(name string) bool { return r.underWay.has(name) }

func (r *requests) note(name string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(r.answers, func(_ string, a answer) bool { return now.Sub(a.at) > answerLife })
	r.answers[name] = answer{err: err, at: now, isNew: true}
}

// take tells an answer, once. Why a request failed is kept until the next is answered.
func (r *requests) take(name string) (is bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.answers[name]
	if !a.isNew || time.Since(a.at) > answerNews {
		return false, nil
	}
	if r.answers[name] = (answer{err: a.err, at: a.at}); a.err == nil {
		delete(r.answers, name)
	}
	return true, a.err
}

func (r *requests) waiting(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &underWayError{former: r.answers[name].err}
}
