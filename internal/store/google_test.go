package store_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

// faultyGoogle gives a store that answers as a handler does, and its directory.
func faultyGoogle(t *testing.T, p patience, answer http.HandlerFunc) (store.Store, string) {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	dir := storetest.Configure(t, store.Config{Protocol: store.GCS, Endpoint: server.URL,
		Bucket: "bucket", Path: "path"},
		map[string]string{store.FileGoogleKey: storetest.GoogleKey(t, "me@test")})
	return openFor(t, p, dir), dir
}

// deny answers as the JSON API does, or with a status and a plain text.
func deny(w http.ResponseWriter, status int, reason string) {
	w.WriteHeader(status)
	if reason != "" {
		_, _ = fmt.Fprintf(w, `{"error":{"code":%d,"message":"no","errors":[{"reason":%q,"message":"no"}]}}`, status,
			reason)
		return
	}
	_, _ = io.WriteString(w, "just no\n")
}

func TestARefusalOfGoogleHasAReason(t *testing.T) {
	for _, c := range []struct {
		status int
		reason string
		why    *store.Reason
	}{
		{403, "forbidden", store.AccessDenied},
		{403, "", store.AccessDenied},
		{403, "retentionPolicyNotMet", store.AccessDenied},
		{401, "authError", store.CredentialsWrong},
		{401, "", store.CredentialsWrong},
		{404, "notFound", store.NoBucket}, // of a listing, too
		{404, "", store.NoBucket},
		{403, "quotaExceeded", store.Full},
		{501, "notImplemented", store.Unsupported},
		{400, "invalid", store.Refused},
		{429, "rateLimitExceeded", store.Unavailable},
		{403, "userRateLimitExceeded", store.Unavailable},
		{503, "backendError", store.Unavailable},
		{500, "", store.Unavailable},
	} {
		t.Run(fmt.Sprint(c.status, c.reason), func(t *testing.T) {
			t.Parallel()
			s, _ := faultyGoogle(t, forRefusal, func(w http.ResponseWriter, _ *http.Request) {
				deny(w,
					c.status, c.reason)
			})
			for method, err := range everything(t.Context(), s) {
				if !errors.Is(err, c.why) || errors.Is(err, store.NotFound) {
					t.Errorf("%s: %v, wanted %v", method, err, c.why)
				} else if text := err.Error(); strings.Contains(text, "PRIVATE") || strings.Contains(text, "Bearer") ||
					!strings.Contains(text, "bucket") || !strings.Contains(text, "no") {
					t.Errorf("%s: the message tells too much or too little: %v", method, err)
				}
			}
		})
	}
}

func TestAnObjectIsMissingOnlyInABucket(t *testing.T) {
	t.Parallel()
	listing := `{"items":[]}`
	s, _ := faultyGoogle(t, forRefusal, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/storage/v1/b/bucket/o" {
			_, _ = io.WriteString(w, listing)
			return
		}
		deny(w, 404, "notFound")
	})
	_, err := s.Get(t.Context(), "key")
	mustFail(t, err, store.NotFound)
	must(t, s.Delete(t.Context(), "key"))
}

func TestAClockThatIsOffIsNoWrongKey(t *testing.T) {
	t.Parallel()
	s, _ := faultyGoogle(t, forRefusal, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
		deny(w, 401, "authError")
	})
	mustFail(t, s.Put(t.Context(), "key", nil), store.ClockSkewed)
}

func TestASilentGoogleIsLeft(t *testing.T) {
	t.Parallel()
	leavesWhoIsSilent(t, faultyGoogle)
}

func TestACutObjectOfGoogleIsNotTakenForAWhole(t *testing.T) {
	t.Parallel()
	takesNoCutObjectForAWhole(t, faultyGoogle)
}

func TestALimitedWriterIsNoSilentGoogle(t *testing.T) {
	t.Parallel()
	s, _ := faultyGoogle(t, forSlow, func(_ http.ResponseWriter, r *http.Request) {
		_,
			_ = io.Copy(io.Discard, r.Body)
	})
	must(t, store.Limited(s, 1<<10).Put(t.Context(), "key", make([]byte, 8<<10)))
}

// sent is an upload as it arrived.
type sent struct {
	about struct {
		Name, CRC32C, StorageClass string
		Metadata                   map[string]string
	}
	body  string
	query url.Values
}

func receive(t *testing.T, r *http.Request) (s sent) {
	t.Helper()
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		t.Error(err)
		return s
	}
	parts := multipart.NewReader(r.Body, params["boundary"])
	var texts []string
	for part, err := parts.NextPart(); err == nil; part, err = parts.NextPart() {
		text, _ := io.ReadAll(part)
		texts = append(texts, string(text))
	}
	if len(texts) != 2 || json.Unmarshal([]byte(texts[0]), &s.about) != nil {
		t.Errorf("not an upload in two parts: %q", texts)
		return s
	}
	s.body, s.query = texts[1], r.URL.Query()
	return s
}

func TestAnUploadToGoogleSaysWhatItCarries(t *testing.T) {
	var last sent
	var path string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		last,
			path = receive(t, r), r.URL.Path
	}))
	t.Cleanup(server.Close)
	dir := storetest.Configure(t, store.Config{Protocol: store.GCS, Endpoint: server.URL, Bucket: "bucket",
		Path: "path", StorageClass: "NEARLINE"},
		map[string]string{store.FileGoogleKey: storetest.GoogleKey(t, "me@test")})
	s := openFor(t, forSuccess, dir)

	must(t, s.Put(t.Context(), "a/key", []byte("123456789")))
	same(t, path, "/upload/storage/v1/b/bucket/o")
	same(t, last.body, "123456789")
	same(t, last.about.Name, "path/a/key")
	same(t, last.about.CRC32C, "4waSgw==") // 0xe3069283, the check value of CRC-32C
	same(t, last.about.StorageClass, "NEARLINE")
	same(t, last.query.Get("ifGenerationMatch"), "")
	must(t, s.Create(t.Context(), "key", nil))
	same(t, last.query.Get("ifGenerationMatch"), "0")
}

func TestALostAnswerOfGoogleIsNoOthersObject(t *testing.T) {
	t.Parallel()
	var kept sent
	lost := false
	s, _ := faultyGoogle(t, forSuccess, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet:
			_ = json.NewEncoder(w).Encode(map[string]any{"metadata": kept.about.Metadata})
		case kept.body != "":
			deny(w, 412, "conditionNotMet")
		default:
			kept, lost = receive(t, r), true
			drop(w)
		}
	})
	must(t, s.Create(t.Context(), "key", []byte("mine")))
	same(t, lost, true)
	mustFail(t, s.Create(t.Context(), "key", []byte("mine")), store.Exists)
}

func TestAListingOfGoogleGoesOnWhereItBroke(t *testing.T) {
	t.Parallel()
	s, _ := faultyGoogle(t, forSuccess, func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		switch {
		case query.Get("pageToken") != "":
			drop(w)
		case query.Get("startOffset") == "path/a":
			_, _ = io.WriteString(w, `{"items":[{"name":"path/a","size":"1"},{"name":"path/b","size":"2"}]}`)
		default:
			_, _ = io.WriteString(w, `{"items":[{"name":"path/a","size":"1"}],"nextPageToken":"next"}`)
		}
	})
	same(t, keys(t, s, ""), []string{"a", "b"})
}

// issuer reads from a token who signed it.
func issuer(t *testing.T, r *http.Request) string {
	t.Helper()
	parts := strings.Split(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), ".")
	if len(parts) != 3 {
		t.Errorf("no token: %q", r.Header.Get("Authorization"))
		return ""
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct{ Iss, Scope string }
	if err := errors.Join(err, json.Unmarshal(text, &claims)); err != nil {
		t.Error(err)
	}
	if claims.Scope != "https://www.googleapis.com/auth/devstorage.read_write" {
		t.Errorf("the token is good for %q", claims.Scope)
	}
	return claims.Iss
}

func TestTheKeyOfAServiceAccountIsReadAgain(t *testing.T) {
	var last string
	s, dir := faultyGoogle(t, forSuccess, func(_ http.ResponseWriter, r *http.Request) { last = issuer(t, r) })
	must(t, s.Put(t.Context(), "key", nil))
	same(t, last, "me@test")
	file := filepath.Join(dir, store.FileGoogleKey)
	must(t, os.WriteFile(file, []byte(storetest.GoogleKey(t, "another@test")), 0o600))
	must(t, s.Put(t.Context(), "key", nil))
	same(t, last, "another@test")
	for _, wrong := range []string{"", "{", `{"type":"authorized_user"}`,
		`{"type":"service_account","private_key":"secret-text"}`} {
		must(t, os.WriteFile(file, []byte(wrong), 0o600))
		err := s.Put(t.Context(), "key", nil)
		mustFail(t, err, store.CredentialsWrong)
		if strings.Contains(err.Error(), "secret-text") {
			t.Errorf("the message tells the key: %v", err)
		}
	}
}

func TestAPodsIdentityAtGoogle(t *testing.T) {
	var asked atomic.Int32
	of := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/computeMetadata/v1/instance/service-accounts/default/token" ||
			r.URL.Query().Get("scopes") != "https://www.googleapis.com/auth/devstorage.read_write" ||
			r.Header.Get("Metadata-Flavor") != "Google" {
			t.Errorf("asked for %s", r.URL)
		}
		_, _ = fmt.Fprintf(w, `{"access_token":"token-%d","expires_in":3599,"token_type":"Bearer"}`, asked.Add(1))
	}))
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(of.URL, "http://"))
	var last string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if last = r.Header.Get("Authorization"); last == "Bearer token-1" && r.Method == http.MethodDelete {
			deny(w, 401, "authError")
		}
	}))
	t.Cleanup(server.Close)
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	dir := storetest.Configure(t, store.Config{Protocol: store.GCS, Endpoint: server.URL,
		Bucket: "bucket", Ambient: true}, map[string]string{store.FileCA: authority})
	s := openFor(t, forSuccess, dir)
	must(t, s.Put(t.Context(), "key", nil))
	must(t, s.Put(t.Context(), "key", nil))
	same(t, last, "Bearer token-1")
	mustFail(t, s.Delete(t.Context(), "key"), store.CredentialsWrong)
	must(t, s.Delete(t.Context(), "key")) // a token that was refused is not used again
	same(t, last, "Bearer token-2")
	of.Close()
	mustFail(t, openFor(t, forSilence, dir).Put(t.Context(), "key", nil), store.CredentialsWrong)
}

func TestOpenRefusesWhatIsNotGoogles(t *testing.T) {
	for config, want := range map[string]string{
		`{"protocol":"ftp","bucket":"bucket"}`:                                 `protocol "ftp"`,
		`{"protocol":"gcs","bucket":"b"}`:                                      `bucket "b"`,
		`{"protocol":"gcs","bucket":"bucket","region":"eu"}`:                   "go with S3",
		`{"protocol":"gcs","bucket":"bucket","serverSideEncryption":"AES256"}`: "go with S3",
		`{"protocol":"gcs","bucket":"bucket","virtualHost":true}`:              "go with S3",
		`{"protocol":"gcs","bucket":"bucket","endpoint":"file:///tmp"}`:        "a directory has no protocol",
	} {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, store.FileConfig), []byte(config), 0o600))
		must(t, os.WriteFile(filepath.Join(dir, store.FileGoogleKey), []byte(storetest.GoogleKey(t, "me@test")), 0o600))
		_, err := store.Open(dir)
		mustFail(t, err, store.Misconfigured)
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, wanted %q", config, err, want)
		}
	}
	_, err := store.Open(storetest.Configure(t, store.Config{Protocol: store.GCS, Bucket: "under_score"}, nil))
	mustFail(t, err, store.CredentialsWrong)
	_ = open(t, storetest.Configure(t, store.Config{Protocol: store.GCS, Bucket: "under_score", Ambient: true}, nil))
	_, err = store.Open(storetest.Configure(t, store.Config{Protocol: store.GCS, Bucket: "bucket", Ambient: true,
		Endpoint: "http://store.example.com"}, nil))
	mustFail(t, err, store.Misconfigured) // whoever is on the way would have the identity
}
