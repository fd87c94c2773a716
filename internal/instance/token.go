package instance

import (
	"log/slog"
	"net/http"
	"sync"
	"time"

	"cnmsql.co/internal/core/agent"
)

// answerHearer hears what the API server answers to each request, whoever made it.
type answerHearer struct {
	to       http.RoundTripper
	answered func(refused bool)
}

// RoundTrip tells of the answer when there is one.
func (h *answerHearer) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := h.to.RoundTrip(r)
	if err == nil {
		h.answered(answer.StatusCode == http.StatusUnauthorized)
	}
	return answer, err
}

// tokenTeller tells whether the API server refuses the token of this Pod's ServiceAccount. The kubelet renews a
// token when most of its life is over, and does not notice that there is another ServiceAccount of that name.
type tokenTeller struct {
	log *slog.Logger
	by  interface {
		// retell has the report made again, and the worker look.
		retell()
	}

	mu sync.Mutex
	is agent.Token
}

func newTokenTeller(m *manager) *tokenTeller { return &tokenTeller{log: m.log, by: m} }

// answered notes an answer of now.
func (t *tokenTeller) answered(refused bool) { t.note(refused, time.Now()) }

func (t *tokenTeller) note(refused bool, at time.Time) {
	t.mu.Lock()
	before := t.is.IsRefused()
	t.is.Answered(refused, at)
	now := t.is.IsRefused()
	t.mu.Unlock()
	if now == before {
		return
	}
	if now {
		t.log.Error("the API server refuses this instance's token; delete its Pod if that lasts")
	} else {
		t.log.Info("the API server accepts this instance's token again")
	}
	t.by.retell()
}

// isRefused reports whether the token has been refused for a while.
func (t *tokenTeller) isRefused() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.is.IsRefused()
}
