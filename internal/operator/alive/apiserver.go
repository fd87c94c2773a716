package alive

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
			log.Info("the API server answers again", "waitedFor", time.Since(begun).Round(time.Second).String())
			return nil
		case ctx.Err() == nil && time.Since(told) >= tellEvery:
			log.Error(err, "waits for the API server, which does not answer; it is tried again each second")
			told = time.Now()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(tryEvery):
		}
	}
}

// Answers tells why the API server does not answer; nil when it does. One that refuses answers. One that says that
// it cannot (a status of 500 and more, which also a balancer before it gives) does not.
func Answers(ctx context.Context, conf *rest.Config) error {
	asks, err := discovery.NewDiscoveryClientForConfig(conf)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	err = asks.RESTClient().Get().AbsPath("/version").MaxRetries(0).Do(ctx).Error()
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		if status.Status().Code < http.StatusInternalServerError {
			return nil
		}
	}
	return err
}
