package operator

import (
	"context"
	"errors"
	"sync"
	"time"
)

// orderPatience is how long a decision waits for an order that was given, or for a report
// that was asked for. Most are
// answered within milliseconds. One that takes longer goes on beside all else and wakes
// its cluster when it is over: clusters whose instances are slow, or mean to be, leave
// the workers to the others.
const orderPatience = 500 * time.Millisecond

var errUnderWay = errors.New("it was asked for and has not answered yet")

// orders are those that instances were given and have not answered, and reports that they
// were asked for.
type orders struct {
	mu       sync.Mutex
	underWay map[string]*order
}

type order struct {
	answer chan error
	// left: nobody waits for the answer any more.
	left bool
}

func newOrders() *orders { return &orders{underWay: map[string]*order{}} }

// give gives an order, the same only once at a time. It is errUnderWay when there is no
// answer yet; over is called when there is one after that.
func (o *orders) give(ctx context.Context, name string, do func(context.Context) error, over func()) error {
	now := o.begin(name)
	if now == nil {
		return errUnderWay
	}
	go func() {
		if o.end(name, now, do(ctx)) {
			over()
		}
	}()
	patience := time.NewTimer(orderPatience)
	defer patience.Stop()
	select {
	case err := <-now.answer:
		return err
	case <-patience.C:
		return o.leave(now)
	}
}

// has reports whether an order was given and has not been answered.
func (o *orders) has(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.underWay[name] != nil
}

func (o *orders) begin(name string) *order {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.underWay[name] != nil {
		return nil
	}
	now := &order{answer: make(chan error, 1)}
	o.underWay[name] = now
	return now
}

// end ends an order with its answer, and reports whether nobody waits for that any more.
func (o *orders) end(name string, now *order, err error) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.underWay, name)
	now.answer <- err
	return now.left
}

func (o *orders) leave(now *order) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case err := <-now.answer:
		return err
	default:
		now.left = true
		return errUnderWay
	}
}
