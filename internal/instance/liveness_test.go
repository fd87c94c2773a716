package instance

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func livez(m *manager) (code int, says string) {
	w := httptest.NewRecorder()
	newProber(m).handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/livez", nil))
	return w.Code, w.Body.String()
}

func TestAManagerThatCannotFenceItsMysqldIsNotAlive(t *testing.T) {
	m := newManager(Options{Instance: "db-1"}.withDefaults())
	m.lease = &lease{}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go m.isolator.keepIsolating(ctx)
	if code, says := livez(m); code != http.StatusOK {
		t.Errorf("at work, it answers %d %s", code, says)
	}

	m.mu.Lock()
	began := time.Now()
	code, says := livez(m)
	m.mu.Unlock()
	if code != http.StatusServiceUnavailable || !strings.Contains(says, "state has been held") {
		t.Errorf("with its state held for ever, it answers %d %s", code, says)
	}
	if took := time.Since(began); took > 4500*time.Millisecond {
		t.Errorf("it answers after %s, and the kubelet waits 5 s", took)
	}
	if code, says := livez(m); code != http.StatusOK {
		t.Errorf("with its state free again, it answers %d %s", code, says)
	}
}

func TestAManagerWhoseFencingLoopStandsStillIsNotAlive(t *testing.T) {
	m := newManager(Options{Instance: "db-1"}.withDefaults())
	m.isolator.began = time.Now().Add(-time.Minute)
	m.isolator.looks.beat(m.isolator.began)
	if code, says := livez(m); code != http.StatusOK {
		t.Errorf("just after a look, it answers %d %s", code, says)
	}
	m.isolator.began = m.isolator.began.Add(-isolationSilence - time.Second)
	if code, says := livez(m); code != http.StatusServiceUnavailable ||
		!strings.Contains(says, "has to isolate itself") {
		t.Errorf("after %s without a look, it answers %d %s", isolationSilence, code, says)
	}
}
