package apiconn

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// UnreadError is that the API server has an object, of which not all can be read. It is as good
// as an API server that does not answer: nobody decides by it, in one way or the other.
type UnreadError struct {
	Object client.Object
	Why    error
}

func (e *UnreadError) Error() string { return e.Why.Error() }

func (e *UnreadError) Unwrap() error { return e.Why }

// AsUnread is the UnreadError in err; nil if there is none.
func AsUnread(err error) *UnreadError {
	var unread *UnreadError
	if errors.As(err, &unread) {
		return unread
	}
	return nil
}

// Whole returns a client whose answers are whole: an object that cannot be read, or a list that
// has one, is an UnreadError.
func Whole(c client.Client) client.Client { return wholeClient{c} }

// WholeReader is that of a reader.
func WholeReader(r client.Reader) client.Reader { return wholeReader{r} }

// WholeGets returns a client that tells of an object that it is asked for whether it is whole. The
// objects of a list tell it themselves.
func WholeGets(c client.WithWatch) client.WithWatch { return wholeGets{c} }

type wholeGets struct{ client.WithWatch }

func (c wholeGets) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return wholeReader{c.WithWatch}.Get(ctx, key, o, opts...)
}

type wholeClient struct{ client.Client }

func (c wholeClient) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return wholeReader{c.Client}.Get(ctx, key, o, opts...)
}

func (c wholeClient) List(ctx context.Context, all client.ObjectList, opts ...client.ListOption) error {
	return wholeReader{c.Client}.List(ctx, all, opts...)
}

type wholeReader struct{ client.Reader }

func (r wholeReader) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if err := r.Reader.Get(ctx, key, o, opts...); err != nil {
		return err
	}
	return unread(o)
}

func (r wholeReader) List(ctx context.Context, all client.ObjectList, opts ...client.ListOption) error {
	if err := r.Reader.List(ctx, all, opts...); err != nil {
		return err
	}
	return meta.EachListItem(all, func(o runtime.Object) error { return unread(o) })
}

// unread is why an object is not whole; nil if it is.
func unread(o runtime.Object) error {
	u, may := o.(interface{ Unread() error })
	if !may {
		return nil
	}
	why := u.Unread()
	object, is := o.(client.Object)
	switch {
	case why == nil:
		return nil
	case !is:
		return fmt.Errorf("a %T: %w", o, why)
	}
	return &UnreadError{object, why}
}
