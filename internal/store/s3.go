package store

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync/atomic"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/encrypt"
	"github.com/minio/minio-go/v7/pkg/s3utils"

	"cnmsql.co/internal/version"
)

// s3Store speaks S3. minio-go signs and parses; when to try again, and for how long to
// wait, is decided here.
type s3Store struct {
	client  minio.Core
	bucket  string
	path    string
	options minio.PutObjectOptions
	limits  limits
	// asks is true when the store, not the configuration, tells the region.
	asks bool
	// conditional is true when the store was seen to keep what is there in a Create.
	conditional atomic.Bool
}

func newS3(l limits, c Config, endpoint *url.URL, dir string) (*s3Store, error) {
	wire := &transport{config: c, dir: dir, silence: l.silence}
	if _, err := wire.current(); err != nil {
		return nil, err
	}
	if err := s3utils.CheckValidBucketName(c.Bucket); err != nil {
		return nil, because(Misconfigured, fmt.Errorf("bucket %q: %w", c.Bucket, err))
	}
	lookup, region := minio.BucketLookupPath, c.Region
	if c.VirtualHost {
		lookup = minio.BucketLookupDNS
	} else if c.Endpoint == "" {
		lookup = minio.BucketLookupAuto // as Amazon wants it
	}
	if region == "" && c.Endpoint != "" {
		region = "us-east-1" // what stores without regions call theirs; Amazon is asked
	}
	keys, err := credentialsOf(c, dir, l.silence)
	if err != nil {
		return nil, err
	}
	client, err := minio.New(endpoint.Host, &minio.Options{Creds: keys, Secure: endpoint.Scheme == "https",
		Transport: wire, Region: region, BucketLookup: lookup, MaxRetries: 1})
	if err != nil {
		return nil, because(Misconfigured, fmt.Errorf("endpoint %s: %w", endpoint, err))
	}
	client.SetAppInfo("cnmsql", version.Version)
	client.SetS3EnableDualstack(false) // firewalls know Amazon's documented names
	sse, err := encryption(c.ServerSideEncryption)
	return &s3Store{client: minio.Core{Client: client}, bucket: c.Bucket, path: c.Path, limits: l, asks: region == "",
		options: minio.PutObjectOptions{ServerSideEncryption: sse, StorageClass: c.StorageClass,
			DisableContentSha256: true}}, err
}

// encryption reads "", "AES256", "aws:kms" and "aws:kms:KEY".
func encryption(name string) (encrypt.ServerSide, error) {
	kms, key, _ := strings.Cut(strings.TrimPrefix(name, "aws:"), ":")
	switch {
	case name == "":
		return nil, nil
	case name == "AES256":
		return encrypt.NewSSE(), nil
	case kms == "kms" && (key == "dsse" || strings.HasPrefix(key, "dsse:")): // Amazon's name of something else
		return nil, refuse(Misconfigured, `serverSideEncryption %q (two layers of encryption) is not supported; `+
			`set aws:kms, or aws:kms:KEY`, name)
	case strings.HasPrefix(name, "aws:") && kms == "kms":
		sse, err := encrypt.NewSSEKMS(key, nil)
		return sse, because(Misconfigured, err)
	}
	return nil, refuse(Misconfigured, `serverSideEncryption %q is not AES256, aws:kms or aws:kms:KEY`, name)
}

// again is limits.again. The first refusal of a region is followed at once: minio-go learned
// the region from it.
func (s *s3Store) again(ctx context.Context, try func() error) error {
	learned := !s.asks
	return s.limits.again(ctx, func() error {
		err := try()
		if errors.Is(err, WrongRegion) && !learned {
			learned = true
			err = try()
		}
		return err
	})
}

// key is an object's name in the bucket.
func (s *s3Store) key(key string) string { return path.Join(s.path, key) }

// failed says what was tried on what.
func (s *s3Store) failed(what, key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s in bucket %s of %s: %w", what, s.key(key), s.bucket, s.client.EndpointURL(), err)
}

func (s *s3Store) Put(ctx context.Context, key string, body []byte) error {
	return s.put(ctx, key, body, how{})
}

func (s *s3Store) Create(ctx context.Context, key string, body []byte) error {
	return s.put(ctx, key, body, how{create: true})
}

func (s *s3Store) put(ctx context.Context, key string, body []byte, how how) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	u := &upload{store: s, key: key, how: how, body: body, options: s.options}
	sha, md := sumOf(ctx, body), md5.Sum(body)
	u.sha, u.md5 = hex.EncodeToString(sha[:]), base64.StdEncoding.EncodeToString(md[:])
	if how.create {
		return s.failed("creating", key, u.create(ctx))
	}
	return s.failed("writing", key, s.again(ctx, func() error { return u.once(ctx) }))
}

// upload is one object on its way. Its SHA-256 is signed with the request, and its MD5 goes
// with it: a store that checks one of them, and all do, does not take other bytes.
type upload struct {
	store    *s3Store
	key      string
	how      how
	body     []byte
	sha, md5 string
	options  minio.PutObjectOptions
	mark     string // of a Create, unlike any other's
}

// markHeader is metadata of an object that was created.
const markHeader = "Cnmsql-Create"

func (u *upload) once(ctx context.Context) error {
	body := &seekable{pacedReader{ctx: ctx, from: bytes.NewReader(u.body), pace: u.how.pace}}
	_, err := u.store.client.PutObject(ctx, u.store.bucket, u.store.key(u.key), body, int64(len(u.body)),
		u.md5, u.sha, u.options)
	return reasoned(ctx, err)
}

// seekable lets minio-go start again.
type seekable struct{ pacedReader }

func (s *seekable) Seek(offset int64, whence int) (int64, error) {
	return s.from.(*bytes.Reader).Seek(offset, whence)
}

// create asks the store to write only what is not there. A store that does not know the
// condition ignores it and overwrites, so the first Create looks beforehand, and has its
// own object refused afterwards.
func (u *upload) create(ctx context.Context) error {
	u.mark = rand.Text()
	u.options.UserMetadata = map[string]string{markHeader: u.mark}
	u.options.SetMatchETagExcept("*")
	proved := u.store.conditional.Load()
	if !proved {
		if _, err := u.look(ctx); !errors.Is(err, NotFound) {
			return err
		}
	}
	err := u.store.again(ctx, createOnce(u.mark, func() error { return u.once(ctx) }, func() (string, error) {
		return u.look(ctx)
	}))
	if err == nil && !proved {
		return u.prove(ctx)
	}
	if errors.Is(err, Exists) {
		u.store.conditional.Store(true)
	}
	return err
}

// look is Exists when there is an object, and gives its mark.
func (u *upload) look(ctx context.Context) (mark string, err error) {
	err = u.store.again(ctx, func() error {
		// Not HEAD, whose refusals have no body that tells why.
		body, info, _, err := u.store.client.GetObject(ctx, u.store.bucket, u.store.key(u.key),
			minio.GetObjectOptions{})
		if err != nil {
			return reasoned(ctx, err)
		}
		mark = info.UserMetadata[markHeader]
		return body.Close()
	})
	if err == nil {
		err = Exists
	}
	return mark, err
}

// prove writes the object again, with the same bytes, which a store must refuse. What else
// goes wrong says nothing about the object: the next Create tries to prove it then.
func (u *upload) prove(ctx context.Context) error {
	err := u.once(ctx)
	if err == nil {
		return refuse(Unsupported, "the store overwrites an object that it was told not to")
	}
	if errors.Is(err, Exists) {
		u.store.conditional.Store(true)
	}
	return nil
}

// Get reads an object; NotFound when there is none. It tries again only before the object has
// begun to come: what breaks then is an error of Read.
func (s *s3Store) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	var body io.ReadCloser
	err := s.again(ctx, func() (err error) {
		body, _, _, err = s.client.GetObject(ctx, s.bucket, s.key(key), minio.GetObjectOptions{})
		return reasoned(ctx, err)
	})
	if err != nil {
		return nil, s.failed("reading", key, err)
	}
	return &objectReader{ReadCloser: body, ctx: ctx, failed: func(err error) error {
		return s.failed("reading", key, err)
	}}, nil
}

// objectReader says why an object cannot be read to its end.
type objectReader struct {
	io.ReadCloser
	ctx    context.Context
	failed func(error) error
}

// Read reads the object as long as the context has not ended. Errors have Reasons.
func (r *objectReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, r.failed(err)
	}
	n, err := r.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = r.failed(reasoned(r.ctx, err))
	}
	return n, err
}

func (s *s3Store) Delete(ctx context.Context, key string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	err := s.again(ctx, func() error {
		err := s.client.RemoveObject(ctx, s.bucket, s.key(key), minio.RemoveObjectOptions{})
		if minio.ToErrorResponse(err).StatusCode == http.StatusOK { // 204 would be right
			return nil
		}
		return reasoned(ctx, err)
	})
	if errors.Is(err, NotFound) {
		return nil
	}
	return s.failed("deleting", key, err)
}

// List goes on behind the last key that came when it is tried again.
func (s *s3Store) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		l := newListing(s.path, yield)
		err := l.run(func() error { return s.again(ctx, func() error { return s.listFrom(ctx, l, prefix) }) })
		if err != nil {
			yield(Object{}, s.failed("listing", prefix, err))
		}
	}
}

func (s *s3Store) listFrom(ctx context.Context, l *listing, prefix string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	no := false
	options := minio.ListObjectsOptions{Prefix: l.before + prefix, Recursive: true, StartAfter: l.last, FetchOwner: &no}
	for found := range s.client.ListObjectsIter(ctx, s.bucket, options) {
		if found.Err != nil {
			return reasoned(ctx, found.Err)
		}
		if !l.found(found.Key, found.Size, found.LastModified) {
			return nil
		}
	}
	return ctx.Err() // minio-go just stops then
}
