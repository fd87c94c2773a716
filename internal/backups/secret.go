package backups

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/pki"
	"cnmsql.co/internal/resources"
	"cnmsql.co/internal/seal"
)

// MissingError is the error when a Secret that an object store needs is not there, or lacks a key.
type MissingError struct{ what string }

func (e *MissingError) Error() string { return e.what }

// AsMissing is the MissingError in err; nil if there is none.
func AsMissing(err error) *MissingError {
	var missing *MissingError
	if errors.As(err, &missing) {
		return missing
	}
	return nil
}

// CheckKey refuses files of a store whose key of encryption is of no use: seal.KeyInvalid,
// with the Secret that it is from.
func CheckKey(s *v1alpha1.ObjectStoreSpec, files map[string][]byte) error {
	if s.Encryption == nil {
		return nil
	}
	if _, err := seal.Parse(files[seal.FileIdentity]); err != nil {
		from := s.Encryption.Identity
		return fmt.Errorf("the key %q of the Secret %s, which objectStore.encryption names: %w",
			from.Key, from.Name, err)
	}
	return nil
}

// SecretReader gives keys of Secrets of a namespace, each Secret read once.
func SecretReader(ctx context.Context, live client.Reader,
	namespace, named string) func(v1alpha1.SecretKeySelector) ([]byte, error) {
	known := map[string]map[string][]byte{}
	return func(of v1alpha1.SecretKeySelector) ([]byte, error) {
		data, read := known[of.Name]
		if !read {
			var s corev1.Secret
			err := live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: of.Name}, &s)
			if apierrors.IsNotFound(err) {
				return nil, &MissingError{fmt.Sprintf("the Secret %s, which %s names, does not exist in "+
					"namespace %s; create it", of.Name, named, namespace)}
			}
			if err != nil {
				return nil, err
			}
			data, known[of.Name] = s.Data, s.Data
		}
		if len(data[of.Key]) == 0 {
			return nil, &MissingError{fmt.Sprintf("the Secret %s, which %s names, has no key %q; add it",
				of.Name, named, of.Key)}
		}
		return data[of.Key], nil
	}
}

// AuthorityError is the error when a Cluster's certificate authority is missing, or of no use, until somebody
// mends its Secret. One that could not be read is none.
type AuthorityError struct{ what error }

func (e *AuthorityError) Error() string { return e.what.Error() }
func (e *AuthorityError) Unwrap() error { return e.what }

// asBroken is the AuthorityError in err; nil if there is none.
func asBroken(err error) *AuthorityError {
	var broken *AuthorityError
	if errors.As(err, &broken) {
		return broken
	}
	return nil
}

// Authority is a Cluster's certificate authority, which the operator made; a Secret of the name that is
// somebody else's is none. One of whose Secret ca.crt alone
// is damaged will do: who is let in by it is nobody whom others go by. An error is an AuthorityError, or the
// API server's.
func Authority(ctx context.Context, from client.Reader, c *v1alpha1.Cluster) (*pki.CA, error) {
	name := resources.Names(c.Name).CASecret()
	var s corev1.Secret
	err := from.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, &s)
	if err != nil {
		err = fmt.Errorf("read the certificate authority of %s: %w", c.Name, err)
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, &AuthorityError{err}
	case err != nil:
		return nil, err
	case !resources.Belongs(c, &s):
		return nil, &AuthorityError{fmt.Errorf("the Secret %s is not that of the Cluster %s: "+
			"it has no owner reference "+
			"to it", name, c.Name)}
	}
	ca, err := pki.ParseCA(resources.BundleOf(s.Data))
	if damaged := (*pki.TrustError)(nil); err != nil && !errors.As(err, &damaged) {
		return nil, &AuthorityError{fmt.Errorf("the Secret %s is damaged: %w", name, err)}
	}
	return ca, nil
}
