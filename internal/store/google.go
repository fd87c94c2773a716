package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"

	"cnmsql.co/internal/version"
)

// googleStore speaks the JSON API of Google Cloud Storage. It uses five of its calls; Google's
// own client would nearly double the program, see docs/design.
type googleStore struct {
	client   *http.Client
	identity identity
	endpoint string // without a slash at its end
	config   Config
	limits   limits
}

// googleEndpoint is the service when the configuration names none.
const googleEndpoint = "https://storage.googleapis.com"

var googleBucket = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]$`)

// newGoogle opens a bucket of Google Cloud Storage.
func newGoogle(l limits, c Config, endpoint *url.URL, dir string) (*googleStore, error) {
	if !googleBucket.MatchString(c.Bucket) {
		return nil, refuse(Misconfigured, "bucket %q is not the name of a bucket", c.Bucket)
	}
	if c.Ambient && endpoint.Scheme != "https" {
		return nil, tokenInTheOpen()
	}
	wire := &transport{config: c, dir: dir, silence: l.silence}
	if _, err := wire.current(); err != nil {
		return nil, err
	}
	s := &googleStore{endpoint: strings.TrimSuffix(endpoint.String(), "/"), config: c, limits: l,
		client: &http.Client{Transport: wire, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}}}
	if c.Ambient {
		s.identity = newMetadataIdentity(l.silence)
		return s, nil
	}
	account := &serviceAccount{dir: dir}
	s.identity = account
	_, err := account.current()
	return s, err
}

// name is an object's name in the bucket.
func (s *googleStore) name(key string) string { return path.Join(s.config.Path, key) }

// failed says what was tried on what.
func (s *googleStore) failed(what, key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s in bucket %s of %s: %w", what, s.name(key), s.config.Bucket, s.endpoint, err)
}

// objects is the URL of the bucket's objects, upload that of new ones.
func (s *googleStore) objects() string {
	return s.endpoint + "/storage/v1/b/" + s.config.Bucket + "/o"
}

func (s *googleStore) upload() string {
	return s.endpoint + "/upload/storage/v1/b/" + s.config.Bucket + "/o"
}

// object is the URL of one object: every character of its name that means something in a
// URL is escaped, slashes too.
func (s *googleStore) object(key string) string {
	return s.objects() + "/" + strings.ReplaceAll(url.QueryEscape(s.name(key)), "+", "%20")
}

// ask sends a request once, and gives the answer if it is a good one. The caller closes its
// body.
func (s *googleStore) ask(ctx context.Context, req *http.Request) (*http.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	token, err := s.identity.token(ctx)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("User-Agent", "cnmsql/"+version.Version)
	res, err := s.client.Do(req.WithContext(ctx))
	if err != nil {
		return nil, onTheWay(ctx, err)
	}
	if res.StatusCode/100 == 2 {
		return res, nil
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode == http.StatusUnauthorized {
		s.identity.refused(token)
	}
	return nil, googleRefusal(res, time.Now())
}

// call is ask for a request without a body.
func (s *googleStore) call(ctx context.Context, method, address string, query url.Values) (*http.Response, error) {
	req, err := http.NewRequest(method, address+"?"+query.Encode(), nil)
	if err != nil {
		return nil, because(Misconfigured, err)
	}
	return s.ask(ctx, req)
}

// read is call for an answer in JSON.
func (s *googleStore) read(ctx context.Context, address string, query url.Values, into any) error {
	res, err := s.call(ctx, http.MethodGet, address, query)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return onTheWay(ctx, err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return because(Unsupported, fmt.Errorf("the answer is not that of Google Cloud Storage: %w", err))
	}
	return nil
}

// Put is Store's.
func (s *googleStore) Put(ctx context.Context, key string, body []byte) error {
	return s.put(ctx, key, body, how{})
}

// Create is Store's.
func (s *googleStore) Create(ctx context.Context, key string, body []byte) error {
	return s.put(ctx, key, body, how{create: true})
}

func (s *googleStore) put(ctx context.Context, key string, body []byte, how how) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	u := &googleUpload{store: s, key: key, body: body, how: how}
	once := func() error { return u.once(ctx) }
	if !how.create {
		return s.failed("writing", key, s.limits.again(ctx, once))
	}
	u.mark = rand.Text()
	try := createOnce(u.mark, once, func() (string, error) { return s.look(ctx, key) })
	return s.failed("creating", key, s.limits.again(ctx, try))
}

// googleUpload is one object on its way. Its CRC32C goes before it: other bytes are refused.
type googleUpload struct {
	store *googleStore
	key   string
	body  []byte
	how   how
	mark  string // of a Create, unlike any other's
}

// googleObject is what the JSON API tells, or is told, of an object.
type googleObject struct {
	Name         string            `json:"name,omitempty"`
	Size         int64             `json:"size,string,omitempty"`
	Created      time.Time         `json:"timeCreated,omitzero"`
	CRC32C       string            `json:"crc32c,omitempty"`
	StorageClass string            `json:"storageClass,omitempty"`
	Metadata     map[string]string `json:"metadata,omitempty"`
}

// markKey is metadata of an object that was created.
const markKey = "cnmsql-create"

// once sends the object in one request: it is there as a whole or not at all.
func (u *googleUpload) once(ctx context.Context) error {
	about := googleObject{Name: u.store.name(u.key), CRC32C: checksum(u.body),
		StorageClass: u.store.config.StorageClass}
	query := url.Values{"uploadType": {"multipart"}, "fields": {"name"}}
	if u.how.create {
		about.Metadata = map[string]string{markKey: u.mark}
		query.Set("ifGenerationMatch", "0")
	}
	text, err := json.Marshal(about)
	if err != nil {
		return because(Refused, err)
	}
	boundary := rand.Text()
	before := fmt.Appendf(nil, "--%[1]s\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n%[2]s\r\n"+
		"--%[1]s\r\nContent-Type: application/octet-stream\r\n\r\n", boundary, text)
	after := fmt.Appendf(nil, "\r\n--%s--\r\n", boundary)
	body := &pacedReader{ctx: ctx, pace: u.how.pace,
		from: io.MultiReader(bytes.NewReader(before), bytes.NewReader(u.body), bytes.NewReader(after))}
	req, err := http.NewRequest(http.MethodPost, u.store.upload()+"?"+query.Encode(), body)
	if err != nil {
		return because(Misconfigured, err)
	}
	req.ContentLength = int64(len(before) + len(u.body) + len(after))
	req.Header.Set("Content-Type", "multipart/related; boundary="+boundary)
	res, err := u.store.ask(ctx, req)
	if err != nil {
		return bucketMissing(err)
	}
	_, err = io.Copy(io.Discard, res.Body)
	return onTheWay(ctx, errors.Join(err, res.Body.Close()))
}

// checksum is the CRC32C of a body as Google writes it.
func checksum(body []byte) string {
	sum := crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}

// look is Exists when there is an object, and gives its mark.
func (s *googleStore) look(ctx context.Context, key string) (mark string, err error) {
	var found googleObject
	err = s.limits.again(ctx, func() error {
		return s.read(ctx, s.object(key), url.Values{"fields": {"metadata"}}, &found)
	})
	if err == nil {
		err = Exists
	}
	return found.Metadata[markKey], err
}

// Get is Store's.
func (s *googleStore) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	var res *http.Response
	err := s.limits.again(ctx, func() (err error) {
		res, err = s.call(ctx, http.MethodGet, s.object(key), url.Values{"alt": {"media"}})
		return s.whatIsMissing(ctx, err)
	})
	if err != nil {
		return nil, s.failed("reading", key, err)
	}
	return &objectReader{ReadCloser: res.Body, ctx: ctx, failed: func(err error) error {
		return s.failed("reading", key, err)
	}}, nil
}

// Delete is Store's.
func (s *googleStore) Delete(ctx context.Context, key string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	err := s.limits.again(ctx, func() error {
		res, err := s.call(ctx, http.MethodDelete, s.object(key), nil)
		if err != nil {
			return s.whatIsMissing(ctx, err)
		}
		return res.Body.Close()
	})
	if errors.Is(err, NotFound) {
		return nil
	}
	return s.failed("deleting", key, err)
}

// whatIsMissing tells a bucket that does not exist from an object that does not: Google
// answers 404 to both, and only a listing is refused for the bucket alone.
func (s *googleStore) whatIsMissing(ctx context.Context, err error) error {
	if !errors.Is(err, NotFound) {
		return err
	}
	var page googlePage
	if listed := s.read(ctx, s.objects(), url.Values{"maxResults": {"1"}, "fields": {"nextPageToken"}},
		&page); errors.Is(listed, NotFound) {
		return bucketMissing(listed)
	}
	return err
}

// bucketMissing is for requests that need no object: if something is not there, it is the
// bucket.
func bucketMissing(err error) error {
	var refused *refusal
	if errors.Is(err, NotFound) && errors.As(err, &refused) {
		return because(NoBucket, refused)
	}
	return err
}

// googlePage is a part of a listing.
type googlePage struct {
	Items []googleObject `json:"items"`
	Next  string         `json:"nextPageToken"`
}

// List is Store's.
func (s *googleStore) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		l := newListing(s.config.Path, yield)
		err := l.run(func() error { return s.limits.again(ctx, func() error { return s.listFrom(ctx, l, prefix) }) })
		if err != nil {
			yield(Object{}, s.failed("listing", prefix, err))
		}
	}
}

// listFrom lists page by page from the last name on, which Google gives once more.
func (s *googleStore) listFrom(ctx context.Context, l *listing, prefix string) error {
	query := url.Values{"prefix": {l.before + prefix}, "maxResults": {"1000"},
		"fields": {"nextPageToken,items(name,size,timeCreated)"}}
	if l.last != "" {
		query.Set("startOffset", l.last)
	}
	for {
		var page googlePage
		if err := s.read(ctx, s.objects(), query, &page); err != nil {
			return bucketMissing(err)
		}
		for _, o := range page.Items {
			if o.Name > l.last && !l.found(o.Name, o.Size, o.Created) {
				return nil
			}
		}
		if page.Next == "" {
			return nil
		}
		query.Set("pageToken", page.Next)
	}
}
