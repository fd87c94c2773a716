package alive

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

const (
	// answerLimit is how long the API server may take to answer, tryEvery how often it is asked.
	answerLimit = 3 * time.Second
	tryEvery    = time.Second
	// tellEvery is how often the log says that it does not answer.
	tellEvery = 10 * time.Second
)

// Await waits until the API server answers. The error is that of ctx, when that ends first.
func Await(ctx context.Context, conf *rest.Config, log logr.Logger) error {
	begun, told := time.Now(), time.Time{}
	for {
		err := Answers(ctx, conf)
		switch {
		case err == nil && told.IsZero():
			return nil
		case err == nil:
			log.Info("the API server answers again", "after", time.Since(begun).Round(time.Second).String())
			return nil
		case ctx.Err() == nil && time.Since(told) >= tellEvery:
			log.Error(err, "the API server does not answer; the operator asks it again each second")
			told = time.Now()
		}
		if !Pause(ctx) {
			return ctx.Err()
		}
	}
}

// Answers tells why the API server does not answer; nil when it does. One that forbids answers. One that says that it
// cannot (a status of 500 and more, which also a balancer before it gives), that it is asked too often, or that it
// does not know who asks (it has just started, or a key is being rotated) does not yet.
func Answers(ctx context.Context, conf *rest.Config) error {
	asks, err := discovery.NewDiscoveryClientForConfig(conf)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	err = asks.RESTClient().Get().AbsPath("/version").MaxRetries(0).Do(ctx).Error()
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && !isOfTheMoment(status.Status().Code) {
		return nil
	}
	return err
}

func isOfTheMoment(code int32) bool {
	return code >= http.StatusInternalServerError || code == http.StatusUnauthorized ||
		code == http.StatusTooManyRequests
}

// IsFromIt reports whether an error is an answer of the API server, or that there was none: it may be another one in
// a moment, while a flag that cannot be followed stays one.
func IsFromIt(err error) bool {
	status := apierrors.APIStatus(nil)
	_, unanswered := errors.AsType[*url.Error](err)
	return errors.As(err, &status) || unanswered || discovery.IsGroupDiscoveryFailedError(err) ||
		meta.IsNoMatchError(err)
}

// Pause waits until it makes sense to ask again; it reports whether ctx has not ended.
func Pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(tryEvery):
		return true
	}
}
