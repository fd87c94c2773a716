package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/tell"
)

// attemptLimit is for how long more is attempted once something has failed: whoever waits for a
// decision does not wait until an API server that is stuck has been asked for each object.
const attemptLimit = time.Second

// attempt is one thing that a Cluster needs and that depends on none of the others.
type attempt struct {
	what string
	do   func(context.Context, *v1alpha1.Cluster) error
}

// attempts are those that failed the last time. They come last the next time, the one that waits
// longest first: one that takes long hinders none of the others.
type attempts struct {
	mu     sync.Mutex
	failed map[types.NamespacedName]map[string]failedAttempt
}

type failedAttempt struct {
	err error
	at  time.Time
}

// all attempts each, whatever becomes of the others. The error is a refusals: all that failed, now or
// when it was attempted last, in the order of the list.
func (a *attempts) all(ctx context.Context, c *v1alpha1.Cluster, list []attempt) error {
	key, begun, isStuck := client.ObjectKeyFromObject(c), time.Now(), false
	for _, one := range a.inTurn(key, list) {
		if isStuck {
			break
		}
		err := one.do(ctx, c)
		a.note(key, one.what, err)
		isStuck = err != nil && time.Since(begun) > attemptLimit
	}
	return together(a.of(key, list)...)
}

// inTurn is the list with those last that failed.
func (a *attempts) inTurn(key types.NamespacedName, list []attempt) []attempt {
	a.mu.Lock()
	defer a.mu.Unlock()
	out, failed := slices.Clone(list), a.failed[key]
	slices.SortStableFunc(out, func(x, y attempt) int { return failed[x.what].at.Compare(failed[y.what].at) })
	return out
}

func (a *attempts) note(key types.NamespacedName, what string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		delete(a.failed[key], what)
		return
	}
	if a.failed == nil {
		a.failed = map[types.NamespacedName]map[string]failedAttempt{}
	}
	if a.failed[key] == nil {
		a.failed[key] = map[string]failedAttempt{}
	}
	a.failed[key][what] = failedAttempt{err, time.Now()}
}

// of are the errors of those that failed last.
func (a *attempts) of(key types.NamespacedName, list []attempt) (errs []error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range list {
		errs = append(errs, a.failed[key][one.what].err)
	}
	return errs
}

// keepOnly forgets what a Cluster does not need any more.
func (a *attempts) keepOnly(key types.NamespacedName, list []attempt) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for what := range a.failed[key] {
		if !slices.ContainsFunc(list, func(one attempt) bool { return one.what == what }) {
			delete(a.failed[key], what)
		}
	}
}

func (a *attempts) forget(key types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.failed, key)
}

// refusals are the errors of things that do not depend on one another.
type refusals []error

func (r refusals) Error() string {
	texts := make([]string, len(r))
	for i, err := range r {
		texts[i] = err.Error()
	}
	return firstOf(texts)
}

func (r refusals) Unwrap() []error { return r }

const (
	// toldMost is how many of many errors are told, and toldBytes what they may take of the status
	// together: a policy that refuses all objects refuses dozens, each in a long text.
	toldMost  = 5
	toldBytes = 3 << 10
)

// firstOf is the first of many texts, and how many more there are.
func firstOf(texts []string) string {
	n := min(len(texts), toldMost)
	told := make([]string, n, n+1)
	for i := range told {
		told[i] = tell.Within(toldBytes/n, texts[i])
	}
	if more := len(texts) - n; more > 0 {
		told = append(told, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(told, "; ")
}

// together is nil if all are.
func together(errs ...error) error {
	var all refusals
	for _, err := range errs {
		var more refusals
		switch {
		case err == nil:
		case errors.As(err, &more):
			all = append(all, more...)
		default:
			all = append(all, err)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// problemFrom turns an error into a problem that is told; of several, what the user has to mend comes
// first, and gives it its name, and of many the first few are told. None of them may keep a failover
// from being decided: only what is new is not begun meanwhile.
func problemFrom(err error) *core.Problem {
	var all refusals
	if !errors.As(err, &all) {
		all = refusals{err}
	}
	var users, others []core.Problem
	for _, err := range all {
		if p := problemOf(err); p.Reason == core.ProblemPrerequisites {
			others = append(others, p)
		} else {
			users = append(users, p)
		}
	}
	reason, texts := slices.Concat(users, others)[0].Reason, []string(nil)
	for _, p := range slices.Concat(users, others) {
		if p.Reason == reason {
			texts = append(texts, p.Message)
		} else {
			texts = append(texts, p.String())
		}
	}
	message := firstOf(texts)
	if len(others) > 0 {
		message += "; it is tried again"
	}
	return &core.Problem{Reason: reason, Message: message}
}

func problemOf(err error) core.Problem {
	var h *hindranceError
	var taken *nameTakenError
	switch {
	case errors.As(err, &h):
		return h.Problem
	case errors.As(err, &taken):
		return core.Problem{Reason: core.ProblemNameTaken, Message: taken.Error()}
	default:
		return core.Problem{Reason: core.ProblemPrerequisites, Message: err.Error()}
	}
}
