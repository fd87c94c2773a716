package store_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

// patience is what a store is given: time to be silent, and time for further tries.
type patience struct{ silence, trying time.Duration }

// Who waits for an error wants it soon, and who waits for the end waits as long as a busy
// machine takes. Between two pieces of forSlow that may be a second.
var (
	forRefusal = patience{time.Minute, 200 * time.Millisecond}
	forSilence = patience{300 * time.Millisecond, 200 * time.Millisecond}
	forSlow    = patience{3 * time.Second, time.Minute}
	forHalf    = patience{3 * time.Second, 200 * time.Millisecond} // to begin an answer, and not end it
	forSuccess = patience{time.Minute, time.Minute}
)

const (
	id     = "the-id"
	secret = "the-secret"
)

// faulty gives a store that answers as a handler does, and its directory.
func faulty(t *testing.T, p patience, answer http.HandlerFunc) (store.Store, string) {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	dir := configure(t, server.URL)
	return openFor(t, p, dir), dir
}

func configure(t *testing.T, endpoint string) (dir string) {
	t.Helper()
	return storetest.Configure(t, store.Config{Endpoint: endpoint, Bucket: "bucket", Path: "path"},
		map[string]string{store.FileAccessKeyID: id, store.FileSecretKey: secret})
}

func openFor(t *testing.T, p patience, dir string) store.Store {
	t.Helper()
	s, err := store.OpenImpatiently(dir, p.silence, p.trying)
	must(t, err)
	return s
}

// everything tries all methods at once, and gives their errors by their names.
func everything(ctx context.Context, s store.Store) map[string]error {
	tries := map[string]func() error{
		"Put":    func() error { return s.Put(ctx, "key", []byte("body")) },
		"Create": func() error { return s.Create(ctx, "key", []byte("body")) },
		"Get":    func() error { _, err := s.Get(ctx, "key"); return err },
		"Delete": func() error { return s.Delete(ctx, "key") },
		"List": func() (last error) {
			for _, err := range s.List(ctx, "") {
				last = err
			}
			return last
		},
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	errs := map[string]error{}
	for method, try := range tries {
		all.Go(func() {
			err := try()
			mu.Lock()
			defer mu.Unlock()
			errs[method] = err
		})
	}
	all.Wait()
	return errs
}

// refusal is an answer with a code, or with a status only.
func refusal(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	if code != "" {
		_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>no</Message></Error>", code)
	}
}

func TestARefusalHasAReason(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
		why    *store.Reason
	}{
		{403, "AccessDenied", store.AccessDenied},
		{403, "", store.AccessDenied},
		{403, "SignatureDoesNotMatch", store.CredentialsWrong},
		{403, "InvalidAccessKeyId", store.CredentialsWrong},
		{400, "ExpiredToken", store.CredentialsWrong},
		{401, "", store.CredentialsWrong},
		{403, "RequestTimeTooSkewed", store.ClockSkewed},
		{404, "NoSuchBucket", store.NoBucket},
		{507, "", store.Full},
		{403, "QuotaExceeded", store.Full},
		{400, "AuthorizationHeaderMalformed", store.WrongRegion},
		{301, "PermanentRedirect", store.WrongRegion},
		{501, "NotImplemented", store.Unsupported},
		{400, "InvalidStorageClass", store.Refused},
	} {
		t.Run(fmt.Sprint(c.status, c.code), func(t *testing.T) {
			t.Parallel()
			s, _ := faulty(t, forRefusal, func(w http.ResponseWriter, _ *http.Request) { refusal(w, c.status, c.code) })
			for method, err := range everything(t.Context(), s) {
				if !errors.Is(err, c.why) {
					t.Errorf("%s: %v, wanted %v", method, err, c.why)
				} else if strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), "bucket") {
					t.Errorf("%s: the message tells too much or too little: %v", method, err)
				}
			}
		})
	}
}

func TestAStormOfErrorsEnds(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
	}{{503, "SlowDown"}, {500, ""}} {
		t.Run(fmt.Sprint(c.status, c.code), func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			s, _ := faulty(t, forRefusal, func(w http.ResponseWriter,
				_ *http.Request) {
				asked.Add(1)
				refusal(w, c.status, c.code)
			})
			begun := time.Now()
			for method, err := range everything(t.Context(), s) {
				if !errors.Is(err, store.Unavailable) {
					t.Errorf("%s: %v", method, err)
				}
			}
			if n := asked.Load(); n < 10 {
				t.Errorf("%d requests by five methods: they do not try again", n)
			}
			if took := time.Since(begun); took > 20*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

func TestARefusalForAMomentIsTriedAgain(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	s, _ := faulty(t, forSuccess, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) < 3 {
			refusal(w, 503, "SlowDown")
			return
		}
		if body, _ := io.ReadAll(r.Body); string(body) != "body" {
			t.Errorf("the last try wrote %q", body)
		}
	})
	must(t, s.Put(t.Context(), "key", []byte("body")))
}

func TestACutObjectIsNotTakenForAWhole(t *testing.T) {
	t.Parallel()
	for name, header := range map[string]string{"Length": "Content-Length: 100\r\n",
		"Chunks": "Transfer-Encoding: chunked\r\n"} {
		t.Run(name, func(t *testing.T) {
			s, _ := faulty(t, forRefusal, raw(header, "32\r\n"+strings.Repeat("x", 50)))
			_, err := read(t, s)
			mustFail(t, err, io.ErrUnexpectedEOF)
			mustFail(t, err, store.ConnectionLost)
		})
	}
	t.Run("Endless", func(t *testing.T) { // its end is that of the connection
		s, _ := faulty(t, forRefusal, raw("", "body"))
		_, err := s.Get(t.Context(), "key")
		mustFail(t, err, store.Unsupported)
	})
}

// faultyStore makes a store of which the server answers as it is told.
type faultyStore func(t *testing.T, p patience, answer http.HandlerFunc) (store.Store, string)

// takesNoCutObjectForAWhole: the connection ends in the middle of an object.
func takesNoCutObjectForAWhole(t *testing.T, server faultyStore) {
	t.Helper()
	s, _ := server(t, forRefusal, raw("Content-Length: 100\r\n", strings.Repeat("x", 50)))
	_, err := read(t, s)
	mustFail(t, err, io.ErrUnexpectedEOF)
	mustFail(t, err, store.ConnectionLost)
}

// raw answers so much, and closes the connection.
func raw(header, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, out, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		_, _ = fmt.Fprintf(out, "HTTP/1.1 200 OK\r\nLast-Modified: %s\r\n%s\r\n%s",
			time.Now().UTC().Format(http.TimeFormat), header, body)
		_ = out.Flush()
		_ = conn.Close()
	}
}

func TestABrokenConnectionIsTriedAgain(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	s, _ := faulty(t, forSuccess, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			drop(w)
		}
	})
	must(t, s.Put(t.Context(), "key", []byte("body")))
	same(t, asked.Load(), int32(2))
	s, _ = faulty(t, forRefusal, func(w http.ResponseWriter, _ *http.Request) { drop(w) })
	mustFail(t, s.Put(t.Context(), "key", []byte("body")), store.ConnectionLost)
}

func drop(w http.ResponseWriter) {
	if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
		_ = conn.Close()
	}
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(nil)
	server.Close()
	s := openFor(t, forRefusal, configure(t, server.URL))
	for method, err := range everything(t.Context(), s) {
		if !errors.Is(err, store.Unreachable) {
			t.Errorf("%s: %v", method, err)
		}
	}
}

func TestTheCertificateIsJudged(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // which is told what the client thinks of it
	server.StartTLS()
	t.Cleanup(server.Close)
	dir := configure(t, server.URL)
	s := openFor(t, forRefusal, dir)
	mustFail(t, s.Put(t.Context(), "key", nil), store.CertificateWrong)

	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	must(t, os.WriteFile(filepath.Join(dir, store.FileCA), authority, 0o600))
	must(t, s.Put(t.Context(), "key", nil)) // without another Open

	dir = storetest.Configure(t, store.Config{Endpoint: server.URL, Bucket: "bucket", InsecureSkipVerify: true},
		map[string]string{store.FileAccessKeyID: id, store.FileSecretKey: secret})
	must(t, openFor(t, forSuccess, dir).Put(t.Context(), "key", nil))
}

// shelf is a store of one object, with a condition that it knows or not.
type shelf struct {
	mu          sync.Mutex
	conditional bool
	lose        int // so many answers to writes are lost
	body, mark  string
	there       bool
}

func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.Method == http.MethodGet && !s.there:
		refusal(w, 404, "NoSuchKey")
	case r.Method == http.MethodGet:
		w.Header().Set("X-Amz-Meta-Cnmsql-Create", s.mark)
		head(w, fmt.Sprint(len(s.body)))
		_, _ = io.WriteString(w, s.body)
	case s.there && s.conditional && r.Header.Get("If-None-Match") == "*":
		refusal(w, 412, "PreconditionFailed")
	default:
		var b bytes.Buffer
		_, _ = b.ReadFrom(r.Body)
		s.body, s.mark, s.there = b.String(), r.Header.Get("X-Amz-Meta-Cnmsql-Create"), true
		if s.lose--; s.lose >= 0 {
			drop(w)
		}
	}
}

func TestALostAnswerIsNoOthersObject(t *testing.T) {
	t.Parallel()
	kept := &shelf{conditional: true, lose: 1}
	s, _ := faulty(t, forSuccess, kept.ServeHTTP)
	must(t, s.Create(t.Context(), "key", []byte("mine")))
	mustFail(t, s.Create(t.Context(), "key", []byte("mine")), store.Exists)
	same(t, kept.body, "mine")
}

func TestAStoreThatOverwritesIsFoundOut(t *testing.T) {
	kept := &shelf{body: "another's", there: true}
	s, _ := faulty(t, forRefusal, kept.ServeHTTP)
	mustFail(t, s.Create(t.Context(), "key", []byte("mine")), store.Exists)
	same(t, kept.body, "another's")
	kept.there = false
	mustFail(t, s.Create(t.Context(), "key", []byte("mine")), store.Unsupported)
}

func TestAListingGoesOnWhereItBroke(t *testing.T) {
	t.Parallel()
	pages := map[string]string{
		"": `<IsTruncated>true</IsTruncated><NextContinuationToken>next</NextContinuationToken>` +
			`<Contents><Key>path/a</Key></Contents>`,
		"path/a": `<IsTruncated>false</IsTruncated><Contents><Key>path/b</Key></Contents>`,
	}
	s, _ := faulty(t, forSuccess, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("continuation-token") != "" {
			drop(w)
			return
		}
		_, _ = fmt.Fprintf(w, "<ListBucketResult>%s</ListBucketResult>", pages[r.URL.Query().Get("start-after")])
	})
	same(t, keys(t, s, ""), []string{"a", "b"})
}
