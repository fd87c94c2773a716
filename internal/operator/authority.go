package operator

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/declared"
	"cnmsql.co/internal/pki"
	"cnmsql.co/internal/resources"
)

// authority keeps the Secret of the cluster's authority. One that is there is good for what has to
// be asked and ordered, also while nothing can be written to it: a label that is refused, a
// webhook that is down. So is one that this operator knows. One that was made and not written is none.
func (p *prerequisites) authority(ctx context.Context, c *v1alpha1.Cluster, asides *[]core.Problem) (stored *pki.CA,
	err error) {
	var look authorityLook
	err = p.secret(ctx, c, resources.Names(c.Name).CASecret(), func(data map[string][]byte) (*corev1.Secret, error) {
		var err error
		if look, err = p.lookAtAuthority(ctx, c, data); err != nil {
			return nil, err
		}
		return resources.AuthoritySecret(c, look.wanted), nil
	})
	p.authorities.note(c, look, err == nil, time.Now())
	if err != nil {
		return look.stored, err
	}
	if asks(c) {
		err = p.answerAuthority(ctx, c)
	}
	*asides = append(*asides, p.tellsAuthority(c, look)...)
	return look.ca, err
}

// authorityLook is what one look at an authority has found, and wants.
type authorityLook struct {
	// stored is what is in the Secret, or was there when this operator knew it; nil if nothing is known of it.
	// good is the same, if all of it is.
	stored *pki.CA
	good   *pki.Kept
	// isGone: there is no Secret.
	isGone bool
	// wanted is what the Secret is to hold, and ca what signs then.
	wanted pki.Kept
	ca     *pki.CA
	// awaits are the instances that hold up the next step; or why they are not known.
	awaits []string
	unsure error
}

// lookAtAuthority tells what the Secret is to hold, by what it holds; nil if there is none.
func (p *prerequisites) lookAtAuthority(ctx context.Context, c *v1alpha1.Cluster,
	data map[string][]byte) (look authorityLook, err error) {
	now := time.Now()
	found, known := resources.KeptOf(data).Known(now), p.authorities.of(c)
	look.isGone = data == nil
	if (look.isGone || asks(c) && isOfNoUse(found)) && known != nil && !isOfNoUse(*known) {
		found, data = known.Known(now), map[string][]byte{}
	}
	if data == nil || asks(c) && isOfNoUse(found) {
		if look.wanted, err = p.replaceAuthority(ctx, c); err == nil {
			look.ca, err = usableAuthority(c, look.wanted)
		}
		look.awaits = c.Status.InstanceNames
		return look, err
	}
	if look.stored, err = usableAuthority(c, found); err != nil {
		return look, err
	}
	look.good = &found
	if look.wanted, err = p.nextOfAuthority(ctx, c, found, &look); err == nil {
		look.ca, err = usableAuthority(c, look.wanted)
	}
	return look, err
}

// isOfNoUse reports whether nobody can be asked or ordered by an authority any more.
func isOfNoUse(k pki.Kept) bool {
	ca, _ := k.Parse()
	return ca == nil || ca.HasEnded(time.Now())
}

// asks reports whether somebody asks for another authority.
func asks(c *v1alpha1.Cluster) bool { return c.Annotations[v1alpha1.AnnotationNewAuthority] != "" }

// answerAuthority takes the request for another authority back: it is made, or was being changed already.
func (p *prerequisites) answerAuthority(ctx context.Context, c *v1alpha1.Cluster) error {
	now := &v1alpha1.Cluster{}
	another, err := patchMeta(ctx, p.client, now, client.ObjectKeyFromObject(c), c.UID,
		map[string]any{"annotations": map[string]any{v1alpha1.AnnotationNewAuthority: nil}})
	if err == nil && !another && now.UID == c.UID {
		*c = *now
	}
	return err
}

// nextOfAuthority takes the next step from one authority to another, where nobody is severed by it.
func (p *prerequisites) nextOfAuthority(ctx context.Context, c *v1alpha1.Cluster, k pki.Kept,
	look *authorityLook) (pki.Kept, error) {
	if !k.Changes() {
		if !asks(c) {
			return k, nil
		}
		next, err := pki.NewCA(c.Name, time.Now())
		look.awaits = c.Status.InstanceNames
		return k.Announce(next), err
	}
	look.awaits, look.unsure = p.awaited(ctx, c, k)
	if len(look.awaits) > 0 || look.unsure != nil {
		return k, nil
	}
	look.awaits = c.Status.InstanceNames
	if len(k.Next.Cert) > 0 || len(k.Lost) > 0 {
		return k.Hand(), nil
	}
	return k.Forget(), nil
}

// replaceAuthority makes another authority where nobody knows the key of the one that is gone. What it signed is kept:
// its certificate is in the Secrets of the instances, and stays trusted beside the new one. Where nothing of it is
// left and a group runs, there is none that would not sever it.
func (p *prerequisites) replaceAuthority(ctx context.Context, c *v1alpha1.Cluster) (pki.Kept, error) {
	lost, runs, err := p.shown(ctx, c)
	if err != nil {
		return pki.Kept{}, err
	}
	if len(lost) == 0 && runs && c.Status.EstablishedAt != nil && declared.Topology(&c.Spec).RunsGroup() && !asks(c) {
		return pki.Kept{}, lostAuthority(c)
	}
	by, err := pki.NewCA(c.Name, time.Now())
	return pki.Replace(lost, by), err
}

// usableAuthority reads the authority that signs. With an error there may be one that is good for
// what has to be asked and ordered, and for no new certificate.
func usableAuthority(c *v1alpha1.Cluster, k pki.Kept) (*pki.CA, error) {
	ca, err := k.Parse()
	var trust *pki.TrustError
	switch {
	case errors.As(err, &trust):
		return ca, brokenAuthority(c, "is damaged: "+err.Error()+"; until it is mended no certificate is made or "+
			"renewed, and the instances go on with those that they have; "+trust.Remedy())
	case err != nil:
		return nil, brokenAuthority(c, "is damaged: "+err.Error()+"; restore it")
	case ca.HasEnded(time.Now()):
		return nil, brokenAuthority(c, "has a certificate that ended at "+ca.Ends().UTC().Format(time.RFC3339)+
			": no certificate that it signed is trusted any more; put one there that is valid for longer")
	}
	return ca, nil
}
