package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/remotecommand"

	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/layout"
)

// word is what a manager said of itself when it was asked, or why it said nothing:
// Report is unknown then.
type word struct {
	Report  core.Fact[core.Report]
	Problem string
	// Forbidden: the API server does not let this user ask.
	Forbidden bool
}

// server is what its mysqld said; nil when it is not known or does not answer.
func (w word) server() *core.Server {
	if r, known := w.Report.Get(); known {
		return r.Server
	}
	return nil
}

// words are those of a cluster's instances, by name.
type words map[string]word

// liveLimit is how long an instance may take to answer.
const liveLimit = 3 * time.Second

// asking is how the manager of an instance is asked for its word.
type asking func(ctx context.Context, instance string) (word, error)

// all asks them side by side; one that does not answer in time holds up none of the
// others.
func (ask asking) all(ctx context.Context, names []string) words {
	var mu sync.Mutex
	var all sync.WaitGroup
	out := words{}
	for _, name := range names {
		all.Go(func() {
			w := ask.one(ctx, name)
			mu.Lock()
			defer mu.Unlock()
			out[name] = w
		})
	}
	all.Wait()
	return out
}

func (ask asking) one(ctx context.Context, name string) word {
	ctx, cancel := context.WithTimeout(ctx, liveLimit)
	defer cancel()
	answered := make(chan word, 1)
	go func() {
		w, err := ask(ctx, name)
		if err != nil {
			w = word{Problem: err.Error(), Forbidden: apierrors.IsForbidden(err)}
		}
		answered <- w
	}()
	select {
	case w := <-answered:
		return w
	case <-ctx.Done():
		return word{Problem: fmt.Sprintf("no answer within %s", liveLimit)}
	}
}

// askManager runs the manager's own binary in the Pod: it asks the manager beside
// it, so that neither its address nor the cluster's CA is needed.
func (s *session) askManager(ctx context.Context, instance string) (word, error) {
	run, err := s.executor(instance, []string{layout.Binary, "instance", "status"}, streams{})
	if err != nil {
		return word{}, err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	out, said := kept{stop: stop}, kept{stop: stop}
	begun := time.Now()
	err = run.StreamWithContext(running, remotecommand.StreamOptions{Stdout: &out, Stderr: &said})
	switch {
	case ctx.Err() != nil:
		return word{}, fmt.Errorf("no answer within %s", liveLimit)
	case out.over || said.over:
		return word{}, fmt.Errorf("reading what its manager says: %w", errSaysTooMuch)
	case err != nil:
		return word{}, s.whyNotAsked(ctx, instance, fmt.Errorf("running instance status in its Pod: %w",
			errors.Join(err, saidToo(said.String()))))
	}
	return wordOf(out.said.Bytes(), begun, time.Now())
}

// whyNotAsked tells a right that is missing from an instance that does not answer. The API server
// refuses to open a stream in words only, so that it is asked for the right itself; where it does
// not say, err stays what it is.
func (s *session) whyNotAsked(ctx context.Context, instance string, err error) error {
	may := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: s.namespace, Verb: "create",
			Resource: "pods", Subresource: "exec", Name: instance}}}
	if s.client.Create(ctx, may) != nil || may.Status.Allowed {
		return err
	}
	return apierrors.NewForbidden(schema.GroupResource{Resource: "pods/exec"}, instance, err)
}

// mayAsk is why instances cannot be asked at all by this user; nil when it is not the right to
// ask that is missing.
func (all words) mayAsk(what string) error {
	for _, w := range all {
		if w.Forbidden {
			return fmt.Errorf("%s needs the right to create pods/exec, by which instances are asked, and nothing was "+
				"done: %s", what, w.Problem)
		}
	}
	return nil
}

func saidToo(text string) error {
	if text = strings.TrimSpace(text); text != "" {
		return errors.New(text)
	}
	return nil
}

// wordOf reads a snapshot that was asked for after begun. The manager tells by its
// own clock how much older than the question its oldest fact is.
func wordOf(text []byte, begun, received time.Time) (word, error) {
	snap, err := control.ReadSnapshot(bytes.NewReader(text))
	if err != nil {
		return word{}, fmt.Errorf("reading what its manager says: %w", err)
	}
	return word{Report: core.Known(snap.Report, begun.Add(time.Duration(snap.Taken-snap.Asked)), received)}, nil
}
