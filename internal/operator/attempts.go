package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/tell"
)

const (
	// attemptLimit is for how long more is attempted once something has failed: whoever waits for a
	// decision does not wait until an API server that is stuck has been asked for each object.
	attemptLimit = time.Second
	// refusedPause is after what time the API server is asked again for what it has refused. It doubles
	// with each refusal in a row, up to refusedPauseMost: by then it is noticed that a policy was mended.
	refusedPause, refusedPauseMost = 5 * time.Second, time.Minute
)

// attemptLease is the one that a failover waits for: it is asked for at each look.
const attemptLease = "lease"

// attempt is one thing that a Cluster needs and that depends on none of the others.
type attempt struct {
	what string
	do   func(context.Context, *v1alpha1.Cluster) error
}

// attempts are those that failed the last time. They come last the next time, the one that waits
// longest first: one that takes long hinders none of the others. What was refused is left out for
// a while, and its error is told meanwhile.
type attempts struct {
	mu     sync.Mutex
	failed map[types.NamespacedName]map[string]failedAttempt
}

// failedAttempt is what failed so many times in a row, for one generation of the Cluster.
type failedAttempt struct {
	err        error
	at         time.Time
	times      int
	generation int64
	// asides are what was found wrong with it besides.
	asides []core.Problem
}

// isPaused reports whether the API server refused this for the Cluster's generation, and is not to
// be asked again yet. The pause doubles with each refusal, up to refusedPauseMost.
func (f failedAttempt) isPaused(c *v1alpha1.Cluster, now time.Time) bool {
	return isRefusal(f.err) && f.generation == c.Generation &&
		now.Sub(f.at) < min(refusedPause<<min(f.times-1, 4), refusedPauseMost)
}

// isRefusal reports whether the API server has answered, and would answer the same again. It is
// none when the server did not answer, when the object was another by then, or when there is
// something else that the user has to mend.
func isRefusal(err error) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer) && !apierrors.IsConflict(err) && problemOf(err).Reason == core.ProblemPrerequisites
}

// all attempts each, whatever becomes of the others. The error is a refusals: all that failed, now or
// when it was attempted last, in the order of the list. What is wrong besides is added to asides.
func (a *attempts) all(ctx context.Context, c *v1alpha1.Cluster, list []attempt, asides *[]core.Problem) error {
	begun, isStuck := time.Now(), false
	for _, one := range a.inTurn(c, list, asides) {
		if isStuck {
			break
		}
		before := len(*asides)
		err := one.do(ctx, c)
		a.note(c, one.what, err, (*asides)[before:])
		isStuck = err != nil && time.Since(begun) > attemptLimit
	}
	return together(a.of(client.ObjectKeyFromObject(c), list)...)
}

// inTurn is the list with those last that failed, without those that are paused: their asides are added.
func (a *attempts) inTurn(c *v1alpha1.Cluster, list []attempt, asides *[]core.Problem) (out []attempt) {
	a.mu.Lock()
	defer a.mu.Unlock()
	failed, now := a.failed[client.ObjectKeyFromObject(c)], time.Now()
	for _, one := range list {
		if last := failed[one.what]; one.what != attemptLease && last.isPaused(c, now) {
			*asides = append(*asides, last.asides...)
		} else {
			out = append(out, one)
		}
	}
	slices.SortStableFunc(out, func(x, y attempt) int { return failed[x.what].at.Compare(failed[y.what].at) })
	return out
}

// note notes what came of an attempt.
func (a *attempts) note(c *v1alpha1.Cluster, what string, err error, asides []core.Problem) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := client.ObjectKeyFromObject(c)
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
	now := failedAttempt{err: err, at: time.Now(), times: 1, generation: c.Generation, asides: slices.Clone(asides)}
	if last := a.failed[key][what]; last.generation == c.Generation {
		now.times += last.times
	}
	a.failed[key][what] = now
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

// Unwrap returns all of the refusals, so that errors.Is and errors.As look at each.
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
	var h *userError
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
