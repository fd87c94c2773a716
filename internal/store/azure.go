package store

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"path"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// azureStore speaks with Azure Blob Storage. Microsoft's client signs and parses; when to try
// again, and for how long to wait, is decided here.
type azureStore struct {
	login  *azureLogin
	place  string // the container's URL, for people
	config Config
	limits limits
}

// name is an object's name in the container.
func (s *azureStore) name(key string) string { return path.Join(s.config.Path, key) }

// failed says what was tried on what.
func (s *azureStore) failed(what, key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s in bucket %s: %w", what, s.name(key), s.place, err)
}

// object is a client of one object, with the credentials of now.
func (s *azureStore) object(key string) (*blockblob.Client, error) {
	in, err := s.login.container()
	if err != nil {
		return nil, err
	}
	return in.NewBlockBlobClient(s.name(key)), nil
}

// Put is Store's.
func (s *azureStore) Put(ctx context.Context, key string, body []byte) error {
	return s.put(ctx, key, body, how{})
}

// Create is Store's.
func (s *azureStore) Create(ctx context.Context, key string, body []byte) error {
	return s.put(ctx, key, body, how{create: true})
}

func (s *azureStore) put(ctx context.Context, key string, body []byte, how how) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	options := s.upload(body)
	once := func() error { return s.once(ctx, key, body, how, options) }
	if !how.create {
		return s.failed("writing", key, s.limits.again(ctx, once))
	}
	mark := rand.Text()
	options.Metadata = map[string]*string{azureMark: &mark}
	options.AccessConditions = &blob.AccessConditions{
		ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: new(azcore.ETagAny)}}
	try := createOnce(mark, once, func() (string, error) { return s.look(ctx, key) })
	return s.failed("creating", key, s.limits.again(ctx, try))
}

// azureMark is metadata of an object that was created: a name that C# would take, and as Go
// writes a header.
const azureMark = "Cnmsqlcreate"

// upload is how a body is written. Its MD5 goes before it: other bytes are refused.
func (s *azureStore) upload(body []byte) *blockblob.UploadOptions {
	sum := md5.Sum(body)
	options := &blockblob.UploadOptions{TransactionalValidation: blob.TransferValidationTypeMD5(sum[:])}
	if s.config.StorageClass != "" {
		options.Tier = new(blob.AccessTier(s.config.StorageClass))
	}
	return options
}

// once sends the object in one request: it is there as a whole or not at all.
func (s *azureStore) once(
	ctx context.Context, key string, body []byte, how how, options *blockblob.UploadOptions,
) error {
	to, err := s.object(key)
	if err != nil {
		return err
	}
	from := &seekable{pacedReader{ctx: ctx, from: bytes.NewReader(body), pace: how.pace}}
	_, err = to.Upload(ctx, streaming.NopCloser(from), options)
	return azureReasoned(ctx, err)
}

// look is Exists when there is an object, and gives its mark.
func (s *azureStore) look(ctx context.Context, key string) (mark string, err error) {
	err = s.limits.again(ctx, func() error {
		at, err := s.object(key)
		if err != nil {
			return err
		}
		found, err := at.GetProperties(ctx, nil)
		if its := found.Metadata[azureMark]; its != nil {
			mark = *its
		}
		return azureReasoned(ctx, err)
	})
	if err == nil {
		err = Exists
	}
	return mark, err
}

// Get is Store's.
func (s *azureStore) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	var body io.ReadCloser
	err := s.limits.again(ctx, func() error {
		at, err := s.object(key)
		if err != nil {
			return err
		}
		found, err := at.DownloadStream(ctx, nil)
		body = found.Body
		return azureReasoned(ctx, err)
	})
	if err != nil {
		return nil, s.failed("reading", key, err)
	}
	failed := func(err error) error { return s.failed("reading", key, err) }
	return &objectReader{ReadCloser: body, ctx: ctx, failed: failed}, nil
}

// Delete is Store's.
func (s *azureStore) Delete(ctx context.Context, key string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	err := s.limits.again(ctx, func() error {
		at, err := s.object(key)
		if err != nil {
			return err
		}
		_, err = at.Delete(ctx, nil)
		return azureReasoned(ctx, err)
	})
	if errors.Is(err, NotFound) {
		return nil
	}
	return s.failed("deleting", key, err)
}

// List is Store's.
func (s *azureStore) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		l := newListing(s.config.Path, yield)
		var page *string // the next one; nil is the first
		err := l.run(func() error {
			return s.limits.again(ctx, func() (err error) {
				page, err = s.listFrom(ctx, l, prefix, page)
				return err
			})
		})
		if err != nil {
			yield(Object{}, s.failed("listing", prefix, err))
		}
	}
}

// azurePage is how many objects are asked for at once.
const azurePage = 1000

// listFrom lists page by page, and gives the one that could not be had.
func (s *azureStore) listFrom(ctx context.Context, l *listing, prefix string, page *string) (*string, error) {
	in, err := s.login.container()
	if err != nil {
		return page, err
	}
	pages := in.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{
		Prefix: new(l.before + prefix), MaxResults: new(int32(azurePage)), Marker: page})
	for pages.More() {
		answer, err := pages.NextPage(ctx)
		if err != nil {
			return page, azureReasoned(ctx, err)
		}
		page = answer.NextMarker
		if answer.Segment == nil {
			continue
		}
		for _, o := range answer.Segment.BlobItems {
			if !azureFound(l, o) {
				return page, nil
			}
		}
	}
	return page, nil
}

// azureFound tells of an object; false when nobody wants more. An account with a hierarchical
// namespace lists directories, too.
func azureFound(l *listing, o *container.BlobItem) bool {
	p := o.Properties
	if o.Name == nil || p == nil || p.ContentLength == nil || p.LastModified == nil ||
		p.ResourceType != nil && *p.ResourceType == "directory" {
		return true
	}
	return l.found(*o.Name, *p.ContentLength, *p.LastModified)
}
