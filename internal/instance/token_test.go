package instance

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// TestATokenThatTheAPIServerRefusesIsReported asks an API server that answers each request with what the test
// sets, a second after the one before.
func TestATokenThatTheAPIServerRefusesIsReported(t *testing.T) {
	var status atomic.Int32
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(status.Load()))
	}))
	defer api.Close()
	m := newManager(Options{Instance: "db-1", Namespace: "ns", Cluster: "db", Log: io.Discard}.withDefaults())
	at := time.Now()
	kube, err := newAPIServer(&rest.Config{Host: api.URL, BearerToken: "of before"}, "ns", "db", func(error) {},
		func(refused bool) { m.token.note(refused, at) })
	must(t, err)
	_, changed := m.snapshot(at)
	ask := func(answer, times int) {
		t.Helper()
		status.Store(int32(answer))
		for range times {
			at = at.Add(time.Second)
			if _, err := kube.GetLease(t.Context()); err == nil {
				t.Fatalf("an answer of %d was taken", answer)
			}
			if _, err := kube.Cluster(t.Context()); err == nil {
				t.Fatalf("an answer of %d was taken", answer)
			}
		}
	}
	is := func(what string, want, told bool) {
		t.Helper()
		s, next := m.snapshot(at)
		if s.Report.TokenRefused != want || (next != changed) != told {
			t.Errorf("%s: refused %v, wanted %v; told at once %v, wanted %v", what, s.Report.TokenRefused, want,
				next != changed, told)
		}
		changed = next
	}
	ask(http.StatusUnauthorized, 20)
	is("after 20 s", false, false)
	ask(http.StatusForbidden, 1)
	ask(http.StatusUnauthorized, 20)
	is("20 s after it was known, and forbidden", false, false)
	ask(http.StatusUnauthorized, 11)
	is("after 30 s", true, true)
	ask(http.StatusUnauthorized, 5)
	is("after 35 s", true, false)
	ask(http.StatusNotFound, 1)
	is("known again", false, true)
}

// TestAnAPIServerThatIsNotReachedRefusesNoToken holds that what has no answer says nothing about the token.
func TestAnAPIServerThatIsNotReachedRefusesNoToken(t *testing.T) {
	api := httptest.NewServer(http.NotFoundHandler())
	api.Close()
	kube, err := newAPIServer(&rest.Config{Host: api.URL}, "ns", "db", func(error) {},
		func(refused bool) { t.Errorf("an answer: refused %v", refused) })
	must(t, err)
	if _, err := kube.GetLease(t.Context()); err == nil {
		t.Error("somebody answers")
	}
}
