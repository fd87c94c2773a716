package store_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
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
// machine takes.
var (
	forRefusal = patience{time.Minute, 200 * time.Millisecond}
	forSilence = patience{300 * time.Millisecond, 200 * time.Millisecond}
	forSlow    = patience{600 * time.Millisecond, time.Minute}
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

func TestASilentStoreIsLeft(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	s, _ := faulty(t, forSilence, func(http.ResponseWriter, *http.Request) { <-over })
	t.Cleanup(func() { close(over) }) // before the server is closed
	begun := time.Now()
	for method, err := range everything(t.Context(), s) {
		if !errors.Is(err, store.Stalled) {
			t.Errorf("%s: %v", method, err)
		}
	}
	if took := time.Since(begun); took < forSilence.silence || took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestASilentStoreEndsARead(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	s, _ := faulty(t, forSilence, func(w http.ResponseWriter, _ *http.Request) {
		head(w, "100")
		_, _ = w.Write(make([]byte, 50))
		w.(http.Flusher).Flush()
		<-over
	})
	t.Cleanup(func() { close(over) })
	n, err := read(t, s)
	mustFail(t, err, store.Stalled)
	same(t, n, 50)
}

func TestASlowStoreIsNotSilent(t *testing.T) {
	t.Parallel()
	s, _ := faulty(t, forSlow, func(w http.ResponseWriter, _ *http.Request) {
		head(w, "30")
		for range 30 {
			_, _ = w.Write([]byte("x"))
			w.(http.Flusher).Flush()
			time.Sleep(forSlow.silence / 20)
		}
	})
	n, err := read(t, s)
	must(t, err)
	same(t, n, 30)
}

func TestASlowReaderIsNoSilentStore(t *testing.T) {
	t.Parallel()
	s, _ := faulty(t, forSlow, func(w http.ResponseWriter, _ *http.Request) {
		head(w, fmt.Sprint(32<<20)) // more than fits between us
		_, _ = w.Write(make([]byte, 32<<20))
	})
	r, err := s.Get(t.Context(), "key")
	must(t, err)
	time.Sleep(forSlow.silence * 3 / 2)
	n, err := io.Copy(io.Discard, r)
	must(t, errors.Join(err, r.Close()))
	same(t, n, int64(32<<20))
}

func TestALimitedWriterIsNoSilentStore(t *testing.T) {
	t.Parallel()
	s, _ := faulty(t, forSlow, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	// 4 KiB at once, then the next after a second, which is longer than a silence.
	must(t, store.Limited(s, 4<<10).Put(t.Context(), "key", make([]byte, 8<<10)))
}

// TestASlowLineIsNoSilentStore: it takes 1 MiB in a second, with little room on the other side; but
// more than some packets of the loopback, which the kernel would drop otherwise, and send again after
// longer and longer pauses.
func TestASlowLineIsNoSilentStore(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		for piece := make([]byte, 32<<10); ; time.Sleep(time.Second / 32) {
			if _, err := io.ReadFull(r.Body, piece); err != nil {
				return
			}
		}
	}))
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		must(t, c.(*net.TCPConn).SetReadBuffer(128<<10))
		return ctx
	}
	server.Start()
	t.Cleanup(server.Close)
	s := openFor(t, patience{2 * time.Second, time.Second}, configure(t, server.URL))
	var moved atomic.Int64
	ctx := store.WithProgress(t.Context(), func() { moved.Add(1) })
	must(t, s.Put(ctx, "key", make([]byte, 8<<20)))
	if n := moved.Load(); n < 20 {
		t.Errorf("it has told of progress %d times", n)
	}
}

// head begins an object.
func head(w http.ResponseWriter, length string) {
	w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
	w.Header().Set("Content-Length", length)
}

// read reads an object to its end or error.
func read(t *testing.T, s store.Store) (int, error) {
	t.Helper()
	r, err := s.Get(t.Context(), "key")
	must(t, err)
	body, err := io.ReadAll(r)
	_ = r.Close()
	return len(body), err
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

// leavesWhoIsSilent: each call ends although the server does not answer.
func leavesWhoIsSilent(t *testing.T, server faultyStore) {
	t.Helper()
	over := make(chan struct{})
	s, _ := server(t, forSilence, func(http.ResponseWriter, *http.Request) { <-over })
	t.Cleanup(func() { close(over) }) // before the server is closed
	for method, err := range everything(t.Context(), s) {
		if !errors.Is(err, store.Stalled) {
			t.Errorf("%s: %v", method, err)
		}
	}
}

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

func TestCredentialsAreReadAgain(t *testing.T) {
	var last http.Header
	s, dir := faulty(t, forSuccess, func(_ http.ResponseWriter, r *http.Request) { last = r.Header.Clone() })
	must(t, s.Put(t.Context(), "key", nil))
	if !strings.Contains(last.Get("Authorization"), "Credential="+id+"/") {
		t.Errorf("signed by %s", last.Get("Authorization"))
	}
	// As a kubelet replaces a Secret.
	must(t, os.Mkdir(filepath.Join(dir, "..second"), 0o700))
	for name, text := range map[string]string{store.FileAccessKeyID: "second\n", store.FileSecretKey: "x",
		store.FileSessionToken: "token"} {
		must(t, os.WriteFile(filepath.Join(dir, "..second", name), []byte(text), 0o600))
	}
	must(t, os.Symlink("..second", filepath.Join(dir, "..data")))
	must(t, s.Put(t.Context(), "key", nil))
	if !strings.Contains(last.Get("Authorization"), "Credential=second/") ||
		last.Get("X-Amz-Security-Token") != "token" {
		t.Errorf("signed by %s", last.Get("Authorization"))
	}
	must(t, os.Remove(filepath.Join(dir, "..second", store.FileSecretKey)))
	mustFail(t, s.Put(t.Context(), "key", nil), store.CredentialsWrong)
}

func TestARequestSaysWhatItCarriesAndHowToKeepIt(t *testing.T) {
	var last *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { last = r }))
	t.Cleanup(server.Close)
	dir := storetest.Configure(t, store.Config{Endpoint: server.URL, Bucket: "bucket", Region: "eu-north-1",
		StorageClass: "STANDARD_IA", ServerSideEncryption: "aws:kms:a-key"},
		map[string]string{store.FileAccessKeyID: id, store.FileSecretKey: secret})
	must(t, openFor(t, forSuccess, dir).Put(t.Context(), "key", []byte("body")))

	sha, md := sha256.Sum256([]byte("body")), md5.Sum([]byte("body"))
	same(t, last.URL.EscapedPath(), "/bucket/key")
	same(t, last.Header.Get("X-Amz-Content-Sha256"), hex.EncodeToString(sha[:]))
	same(t, last.Header.Get("Content-Md5"), base64.StdEncoding.EncodeToString(md[:]))
	same(t, last.Header.Get("X-Amz-Storage-Class"), "STANDARD_IA")
	same(t, last.Header.Get("X-Amz-Server-Side-Encryption"), "aws:kms")
	same(t, last.Header.Get("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id"), "a-key")
	signed := last.Header.Get("Authorization")
	if !strings.Contains(signed, "/eu-north-1/s3/") || !strings.Contains(signed, "x-amz-content-sha256") {
		t.Errorf("signed by %s", signed)
	}
}

func TestAPodsRoleSigns(t *testing.T) {
	role := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"AccessKeyId":"of-the-role","SecretAccessKey":"x","Token":"token","Expiration":%q}`,
			time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}))
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", role.URL)
	var last http.Header
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter,
		r *http.Request) {
		last = r.Header.Clone()
	}))
	t.Cleanup(server.Close)
	dir := storetest.Configure(t, store.Config{Endpoint: server.URL, Bucket: "bucket", Ambient: true}, nil)
	must(t, openFor(t, forSuccess, dir).Put(t.Context(), "key", nil))
	if !strings.Contains(last.Get("Authorization"), "Credential=of-the-role/") ||
		last.Get("X-Amz-Security-Token") != "token" {
		t.Errorf("signed by %s", last.Get("Authorization"))
	}
	role.Close()
	mustFail(t, openFor(t, forRefusal, dir).Put(t.Context(), "key", nil), store.CredentialsWrong)
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
		"":       `<IsTruncated>true</IsTruncated><NextContinuationToken>next</NextContinuationToken><Contents><Key>path/a</Key></Contents>`,
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

func TestVirtualHost(t *testing.T) {
	t.Parallel()
	dir := storetest.Configure(t, store.Config{Endpoint: "http://store.invalid", Bucket: "bucket", VirtualHost: true},
		map[string]string{store.FileAccessKeyID: id, store.FileSecretKey: secret})
	err := openFor(t, forSilence, dir).Put(t.Context(), "key", nil)
	if err == nil || !strings.Contains(err.Error(), "http://bucket.store.invalid/key") {
		t.Errorf("not the host that was wanted: %v", err)
	}
}
