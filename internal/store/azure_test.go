package store_test

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

const (
	azureAccount   = "account"
	azureSignature = "the-signature-of-a-token"
)

// azureKey is base64, as Azure gives it out.
var azureKey = base64.StdEncoding.EncodeToString([]byte(secret))

// faultyAzure gives a store that answers as a handler does, and its directory.
func faultyAzure(t *testing.T, p patience, answer http.HandlerFunc) (store.Store, string) {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	dir := atAzure(t, store.Config{Endpoint: server.URL + "/" + azureAccount},
		map[string]string{store.FileAzureAccount: azureAccount, store.FileAzureKey: azureKey})
	return openFor(t, p, dir), dir
}

func atAzure(t *testing.T, c store.Config, files map[string]string) (dir string) {
	t.Helper()
	c.Protocol, c.Bucket, c.Path = store.Azure, "bucket", "path"
	return storetest.Configure(t, c, files)
}

// denyAt answers as Azure does, or with a status and a plain text.
func denyAt(w http.ResponseWriter, status int, code string) {
	if code == "" {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "just no\n")
		return
	}
	w.Header().Set("X-Ms-Error-Code", code)
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>no\nRequestId:1</Message></Error>", code)
}

func TestARefusalOfAzureHasAReason(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
		why    *store.Reason
	}{
		{403, "AuthorizationPermissionMismatch", store.AccessDenied},
		{403, "AuthorizationFailure", store.AccessDenied},
		{403, "KeyBasedAuthenticationNotPermitted", store.AccessDenied},
		{403, "", store.AccessDenied},
		{409, "BlobImmutableDueToPolicy", store.AccessDenied},
		{412, "LeaseIdMissing", store.AccessDenied},
		{403, "AuthenticationFailed", store.CredentialsWrong},
		{401, "InvalidAuthenticationInfo", store.CredentialsWrong},
		{401, "", store.CredentialsWrong},
		{404, "ContainerNotFound", store.NoBucket},
		{404, "", store.Misconfigured}, // who says so, is not Azure
		{507, "", store.Full},
		{412, "SomeOtherCondition", store.Refused},
		{400, "UnsupportedHeader", store.Unsupported},
		{409, "InvalidBlobType", store.Refused},
		{503, "ServerBusy", store.Unavailable},
		{500, "OperationTimedOut", store.Unavailable},
		{429, "", store.Unavailable},
		{400, "Md5Mismatch", store.ConnectionLost},
	} {
		t.Run(fmt.Sprint(c.status, c.code), func(t *testing.T) {
			t.Parallel()
			s, _ := faultyAzure(t, forRefusal, func(w http.ResponseWriter, _ *http.Request) {
				denyAt(w, c.status, c.code)
			})
			for method, err := range everything(t.Context(), s) {
				if !errors.Is(err, c.why) || errors.Is(err, store.NotFound) || errors.Is(err, store.Exists) {
					t.Errorf("%s: %v, wanted %v", method, err, c.why)
				} else if text := err.Error(); strings.Contains(text, azureKey) || strings.Contains(text, "\n") ||
					!strings.Contains(text, "bucket") || !strings.Contains(text, "no") {
					t.Errorf("%s: the message tells too much or too little: %v", method, err)
				}
			}
		})
	}
}

func TestAClockThatIsOffIsNoWrongKeyAtAzure(t *testing.T) {
	t.Parallel()
	s, _ := faultyAzure(t, forRefusal, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
		denyAt(w, 403, "AuthenticationFailed")
	})
	mustFail(t, s.Put(t.Context(), "key", nil), store.ClockSkewed)
}

func TestASilentAzureIsLeft(t *testing.T) {
	t.Parallel()
	leavesWhoIsSilent(t, faultyAzure)
}

func TestACutObjectOfAzureIsNotTakenForAWhole(t *testing.T) {
	t.Parallel()
	takesNoCutObjectForAWhole(t, faultyAzure)
}

func TestALimitedWriterIsNoSilentAzure(t *testing.T) {
	t.Parallel()
	s, _ := faultyAzure(t, forSlow, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusCreated)
	})
	must(t, store.Limited(s, 1<<10).Put(t.Context(), "key", make([]byte, 8<<10)))
}

func TestAnUploadToAzureSaysWhatItCarries(t *testing.T) {
	var last *http.Request
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last = r
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(server.Close)
	c := store.Config{Endpoint: server.URL + "/" + azureAccount, StorageClass: "Cool"}
	s := openFor(t, forSuccess, atAzure(t, c,
		map[string]string{store.FileAzureAccount: azureAccount, store.FileAzureKey: azureKey}))

	must(t, s.Put(t.Context(), "a/key", []byte("123456789")))
	sum := md5.Sum([]byte("123456789"))
	same(t, string(body), "123456789")
	same(t, last.URL.Path, "/account/bucket/path/a/key")
	for header, want := range map[string]string{
		"X-Ms-Blob-Type": "BlockBlob", "X-Ms-Access-Tier": "Cool", "If-None-Match": "",
		"Content-Md5": base64.StdEncoding.EncodeToString(sum[:]),
	} {
		if got := last.Header.Get(header); got != want {
			t.Errorf("%s is %q, wanted %q", header, got, want)
		}
	}
	if got := last.Header.Get("User-Agent"); !strings.HasPrefix(got, "cnmsql/") {
		t.Errorf("it calls itself %q", got)
	}
	must(t, s.Create(t.Context(), "key", nil))
	same(t, last.Header.Get("If-None-Match"), "*")
}

func TestALostAnswerOfAzureIsNoOthersObject(t *testing.T) {
	t.Parallel()
	var mark atomic.Value
	s, _ := faultyAzure(t, forSuccess, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch {
		case r.Method == http.MethodHead:
			w.Header().Set("X-Ms-Meta-Cnmsqlcreate", mark.Load().(string))
		case mark.Load() != nil:
			denyAt(w, 409, "BlobAlreadyExists")
		default:
			mark.Store(r.Header.Get("X-Ms-Meta-Cnmsqlcreate"))
			drop(w)
		}
	})
	must(t, s.Create(t.Context(), "key", []byte("mine")))
	if mark.Load() == "" {
		t.Error("there is no mark")
	}
	mustFail(t, s.Create(t.Context(), "key", []byte("mine")), store.Exists)
}

// page is a part of a listing, as Azure writes it.
func page(next string, names ...string) string {
	var items strings.Builder
	for _, name := range names {
		kind := "file"
		if strings.HasSuffix(name, "dir") {
			kind = "directory"
		}
		fmt.Fprintf(&items, "<Blob><Name>%s</Name><Properties><Last-Modified>Tue, 24 Nov 2026 20:00:00 GMT"+
			"</Last-Modified><Content-Length>1</Content-Length><ResourceType>%s</ResourceType></Properties></Blob>",
			name, kind)
	}
	return `<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Blobs>` + items.String() +
		"</Blobs><NextMarker>" + next + "</NextMarker></EnumerationResults>"
}

func TestAListingOfAzureGoesOnWhereItBroke(t *testing.T) {
	t.Parallel()
	var dropped atomic.Bool
	s, _ := faultyAzure(t, forSuccess, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		switch marker := r.URL.Query().Get("marker"); {
		case marker == "":
			_, _ = io.WriteString(w, page("next", "path/a", "path/a-dir"))
		case marker == "next" && dropped.CompareAndSwap(false, true):
			drop(w)
		default:
			_, _ = io.WriteString(w, page("", "path/b"))
		}
	})
	same(t, keys(t, s, ""), []string{"a", "b"}) // a directory is no object
	same(t, dropped.Load(), true)
}

// TestCredentialsOfAzureAreReadAgain: each is what signs the next request.
func TestCredentialsOfAzureAreReadAgain(t *testing.T) {
	var last *http.Request
	s, dir := faultyAzure(t, forSuccess, func(w http.ResponseWriter, r *http.Request) {
		last = r
		w.WriteHeader(http.StatusCreated)
	})
	write := func(name, text string) { must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)) }
	must(t, s.Put(t.Context(), "key", nil))
	first := last.Header.Get("Authorization")
	if !strings.HasPrefix(first, "SharedKey "+azureAccount+":") {
		t.Fatalf("it is signed by %q", first)
	}
	must(t, os.Remove(filepath.Join(dir, store.FileAzureKey)))
	write(store.FileAzureSAS, "?sv=2025-01-05&sig="+azureSignature+"\n")
	must(t, s.Put(t.Context(), "key", nil))
	same(t, last.Header.Get("Authorization"), "")
	same(t, last.URL.Query().Get("sig"), azureSignature)
	for _, wrong := range []string{"", "secret-text", "sv=1&se=secret-text", "sig=%zzsecret-text"} {
		write(store.FileAzureSAS, wrong)
		err := s.Put(t.Context(), "key", nil)
		mustFail(t, err, store.CredentialsWrong)
		if strings.Contains(err.Error(), "secret-text") {
			t.Errorf("the message tells the token: %v", err)
		}
	}
}

func TestASASTokenIsInNoError(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			drop(w)
			return
		}
		denyAt(w, 403, "AuthorizationFailure")
	}))
	dir := atAzure(t, store.Config{Endpoint: server.URL},
		map[string]string{store.FileAzureSAS: "sv=1&sig=" + azureSignature})
	s := openFor(t, forRefusal, dir)
	for range 2 { // refused and dropped, then unreachable
		for method, err := range everything(t.Context(), s) {
			if err == nil || strings.Contains(err.Error(), azureSignature) {
				t.Errorf("%s: %v", method, err)
			}
		}
		server.Close()
	}
	if place, _ := store.Configured(dir); place != server.URL+"/bucket/path" {
		t.Errorf("it is %s", place)
	}
}

// TestAnotherAccountIsAnotherStore: whoever archives opens it anew, and says so.
func TestAnotherAccountIsAnotherStore(t *testing.T) {
	dir := atAzure(t, store.Config{},
		map[string]string{store.FileAzureAccount: "first", store.FileAzureKey: azureKey})
	s := openFor(t, forRefusal, dir)
	place, digest := store.Configured(dir)
	same(t, place, "https://first.blob.core.windows.net/bucket/path")
	must(t, os.WriteFile(filepath.Join(dir, store.FileAzureAccount), []byte("second"), 0o600))
	place, other := store.Configured(dir)
	same(t, place, "https://second.blob.core.windows.net/bucket/path")
	if other == digest {
		t.Errorf("both are %s", digest)
	}
	mustFail(t, s.Put(t.Context(), "key", nil), store.Misconfigured)

	must(t, os.Remove(filepath.Join(dir, store.FileAzureAccount)))
	must(t, os.Remove(filepath.Join(dir, store.FileAzureKey)))
	connection := "AccountName=third;AccountKey=" + azureKey + ";EndpointSuffix=core.chinacloudapi.cn"
	must(t, os.WriteFile(filepath.Join(dir, store.FileAzureConnection), []byte(connection), 0o600))
	place, _ = store.Configured(dir)
	same(t, place, "https://third.blob.core.chinacloudapi.cn/bucket/path")
}

func TestAPodsIdentityAtAzure(t *testing.T) {
	var last string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last = r.Header.Get("Authorization")
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(server.Close)
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	dir := atAzure(t, store.Config{Endpoint: server.URL, Ambient: true}, map[string]string{store.FileCA: authority})
	storetest.PodIdentity(t, "one", "the-token")
	must(t, openFor(t, forSuccess, dir).Put(t.Context(), "key", nil))
	same(t, last, "Bearer the-token")
	storetest.PodIdentity(t, "another", "").Close()
	err := openFor(t, forRefusal, dir).Put(t.Context(), "key", nil)
	mustFail(t, err, store.CredentialsWrong)
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("not one line: %v", err)
	}
}

func TestAPodsWorkloadIdentityAtAzureIsTakenFirst(t *testing.T) {
	storetest.PodIdentity(t, "node", "the-token-of-the-node")
	t.Setenv("AZURE_FEDERATED_TOKEN_FILE", filepath.Join(t.TempDir(), "token"))
	t.Setenv("AZURE_TENANT_ID", "")
	dir := atAzure(t, store.Config{Endpoint: "https://127.0.0.1:1", Ambient: true}, nil)
	err := openFor(t, forRefusal, dir).Put(t.Context(), "key", nil)
	mustFail(t, err, store.CredentialsWrong)
	if !strings.Contains(err.Error(), "tenant") {
		t.Errorf("it does not say what is missing: %v", err)
	}
}

func TestOpenRefusesWhatIsNotAzures(t *testing.T) {
	type files map[string]string
	key := files{store.FileAzureAccount: azureAccount, store.FileAzureKey: azureKey}
	for name, c := range map[string]struct {
		config store.Config
		files  files
		why    error
	}{
		"a bucket that is no container": {store.Config{Bucket: "under_score"}, key, store.Misconfigured},
		"a region":                      {store.Config{Region: "eu"}, key, store.Misconfigured},
		"encryption":                    {store.Config{ServerSideEncryption: "AES256"}, key, store.Misconfigured},
		"a tier that cannot be read":    {store.Config{StorageClass: "Archive"}, key, store.Misconfigured},
		"an identity without TLS":       {store.Config{Endpoint: "http://h", Ambient: true}, nil, store.Misconfigured},
		"an identity without account":   {store.Config{Ambient: true}, nil, store.CredentialsWrong},
		"an identity and a key":         {store.Config{Ambient: true}, key, store.CredentialsWrong},
		"nothing":                       {store.Config{Endpoint: "https://h"}, nil, store.CredentialsWrong},
		"a key without account": {store.Config{Endpoint: "https://h"},
			files{store.FileAzureKey: azureKey}, store.CredentialsWrong},
		"a key that is none": {store.Config{},
			files{store.FileAzureAccount: azureAccount, store.FileAzureKey: "%"}, store.CredentialsWrong},
		"a name that is none": {store.Config{},
			files{store.FileAzureAccount: "evil.com/", store.FileAzureKey: azureKey}, store.CredentialsWrong},
		"half a connection string": {store.Config{},
			files{store.FileAzureConnection: "AccountName=a"}, store.CredentialsWrong},
		"two places": {store.Config{Endpoint: "https://h"},
			files{store.FileAzureConnection: "AccountName=abc;AccountKey=" + azureKey}, store.Misconfigured},
	} {
		t.Run(name, func(t *testing.T) {
			if c.config.Bucket == "" {
				c.config.Bucket = "bucket"
			}
			c.config.Protocol = store.Azure
			_, err := store.Open(storetest.Configure(t, c.config, c.files))
			mustFail(t, err, c.why)
		})
	}
	_ = open(t, atAzure(t, store.Config{StorageClass: "Cold", Endpoint: "https://h/account"}, key))
	_ = open(t, atAzure(t, store.Config{Ambient: true}, map[string]string{store.FileAzureAccount: azureAccount}))
}

// TestAzuriteSaysWhatIsWrong: what a real server refuses has the Reason that the table gives it.
func TestAzuriteSaysWhatIsWrong(t *testing.T) {
	at := storetest.Azurite(t)
	over := at.BySAS(t, time.Now().Add(-time.Hour))
	wrongKey := at.ByKey(t)
	must(t, os.WriteFile(filepath.Join(wrongKey, store.FileAzureKey), []byte(azureKey), 0o600))
	noBucket := at.ByKey(t)
	text, err := os.ReadFile(filepath.Join(noBucket, store.FileConfig))
	must(t, err)
	text = []byte(strings.ReplaceAll(string(text), `"bucket":"bucket"`, `"bucket":"another"`))
	must(t, os.WriteFile(filepath.Join(noBucket, store.FileConfig), text, 0o600))
	untrusted := at.ByKey(t)
	must(t, os.Remove(filepath.Join(untrusted, store.FileCA)))
	for name, c := range map[string]struct {
		dir string
		why error
	}{
		// AuthorizationFailure, where Azure by its documentation says AuthenticationFailed.
		"expired":               {over, store.AccessDenied},
		"wrong key":             {wrongKey, store.CredentialsWrong},
		"no container":          {noBucket, store.NoBucket},
		"untrusted certificate": {untrusted, store.CertificateWrong},
	} {
		for method, err := range everything(t.Context(), openFor(t, forRefusal, c.dir)) {
			if !errors.Is(err, c.why) {
				t.Errorf("%s: %s: %v, wanted %v", name, method, err, c.why)
			}
		}
	}
}
