package operator

import (
	"context"
	"errors"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/resources"
)

// userSecretLife is how long a user's Secret counts as read. It carries no label
// of ours, so that the cache does not hold it and no change of it wakes anybody.
const userSecretLife = time.Minute

// userSecret is what a user gave in Secrets, as it was read for a Cluster.
type userSecret struct {
	uid        types.UID
	generation int64
	read       time.Time
	data       map[string][]byte
	// missing tells that there is none any more.
	missing []core.Problem
}

// holds reports whether it was read for this Cluster, for its present generation, and not long
// ago.
func (u userSecret) holds(c *v1alpha1.Cluster) bool {
	return u.uid == c.UID && u.generation == c.Generation && time.Since(u.read) < userSecretLife
}

// appSecret builds the Secret of the application's account. Once the account was made, a Secret of the
// user's that is of no use any more changes nothing of it, and is told in asides: who makes a slip
// in it must not keep Pods and certificates of the cluster from being made again. Without an authority, the one
// that the Secret has stays in it.
func (p *prerequisites) appSecret(ctx context.Context, authority []byte, asides *[]core.Problem) func(
	*v1alpha1.Cluster, map[string][]byte, io.Reader) (*corev1.Secret, error) {
	return func(c *v1alpha1.Cluster, existing map[string][]byte, random io.Reader) (*corev1.Secret, error) {
		user, err := p.userSecret(ctx, c)
		var mend *userError
		isMade := existing != nil && c.Status.EstablishedAt != nil
		if errors.As(err, &mend) && isMade {
			// It was used; the account stays what it is, and the Secret is looked for now and then.
			user, err = userSecret{uid: c.UID, generation: c.Generation, read: time.Now(), missing: stays(c, mend)}, nil
		}
		if err != nil {
			return nil, err
		}
		if user.missing != nil {
			*asides = user.missing
		}
		authority := authority
		if authority == nil {
			authority = existing[resources.KeyCA]
		}
		s, err := resources.AppSecret(c, existing, user.data, authority, random)
		switch no := (core.Problem{Reason: core.ProblemSecretIncomplete}); {
		case err == nil:
			p.keepUser(c, user)
			return s, nil
		case isMade:
			no.Message = err.Error() + "; until then the application's account stays as it is"
			*asides = []core.Problem{no} // it may be built again
			return resources.AppSecret(c, existing, nil, authority, random)
		default:
			no.Message = err.Error()
			return nil, &userError{no}
		}
	}
}

// stays tells what becomes of an account whose Secret is missing.
func stays(c *v1alpha1.Cluster, missing *userError) []core.Problem {
	told := missing.Problem
	told.Message += "; until then the application's account stays as it is, with the password in the Secret " +
		resources.Names(c.Name).AppSecret()
	return []core.Problem{told}
}

// userSecret reads the Secret that spec.bootstrap.initdb.secret names, or recalls
// it; it has no data when none is named.
func (p *prerequisites) userSecret(ctx context.Context, c *v1alpha1.Cluster) (userSecret, error) {
	b := c.Spec.Bootstrap
	if b == nil || b.InitDB == nil || b.InitDB.Secret == nil {
		return userSecret{}, nil
	}
	p.mu.Lock()
	known := p.users[client.ObjectKeyFromObject(c)]
	p.mu.Unlock()
	if known.holds(c) {
		return known, nil
	}
	var s corev1.Secret
	read := time.Now()
	err := p.live.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: b.InitDB.Secret.Name}, &s)
	if apierrors.IsNotFound(err) {
		return userSecret{}, &userError{core.Problem{Reason: core.ProblemSecretMissing, Message: "the Secret " +
			b.InitDB.Secret.Name +
			", which spec.bootstrap.initdb.secret names, does not exist in namespace " + c.Namespace +
			"; create it (type kubernetes.io/basic-auth, keys username and password)"}}
	}
	if s.Data == nil {
		s.Data = map[string][]byte{} // there is one, and it is not complete
	}
	return userSecret{uid: c.UID, generation: c.Generation, read: read, data: s.Data}, err
}

// namesItsOwn refuses a Cluster whose spec.bootstrap.initdb.secret is the Secret that the operator makes of it: it is
// told to be missing, and where the user makes it, to be in the way. A cluster that is made has its account in it.
func namesItsOwn(c *v1alpha1.Cluster) error {
	own, b := resources.Names(c.Name).AppSecret(), c.Spec.Bootstrap
	isMade := c.Status.EstablishedAt != nil
	if isMade || b == nil || b.InitDB == nil || b.InitDB.Secret == nil || b.InitDB.Secret.Name != own {
		return nil
	}
	return &userError{core.Problem{Reason: core.ProblemSecretOwn, Message: "spec.bootstrap.initdb.secret names the " +
		"Secret " + own + ", which the operator makes itself. spec.bootstrap cannot be changed: delete this Cluster, " +
		"which holds no data yet, and create it without initdb.secret, so that a password is made, or with a Secret " +
		"of another name; delete " + own + " if you have created it"}}
}

// keepUser remembers an account that can be used. One that is missing or not
// complete is looked for again at once: somebody is mending it.
func (p *prerequisites) keepUser(c *v1alpha1.Cluster, user userSecret) {
	if user.uid == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users[client.ObjectKeyFromObject(c)] = user
}
