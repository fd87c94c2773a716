package operator

import (
	"strings"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/declared"
	"cnmsql.co/internal/pki"
	"cnmsql.co/internal/resources"
)

// anotherAuthority is how to get one.
const anotherAuthority = ", or have another one made: kubectl annotate cluster NAME " +
	v1alpha1.AnnotationNewAuthority + "=now (docs/security.md, \"Another authority\")"

func secretOfAuthority(c *v1alpha1.Cluster) string {
	return "the Secret " + resources.Names(c.Name).CASecret()
}

func remedy(c *v1alpha1.Cluster) string { return strings.Replace(anotherAuthority, "NAME", c.Name, 1) }

func brokenAuthority(c *v1alpha1.Cluster, how string) error {
	return &userError{core.Problem{Reason: core.ProblemAuthorityBroken,
		Message: secretOfAuthority(c) + " " + how + remedy(c)}}
}

func lostAuthority(c *v1alpha1.Cluster) error {
	return &userError{core.Problem{Reason: core.ProblemAuthorityLost, Message: secretOfAuthority(c) + " is gone, and " +
		"so are the Secrets of the members' certificates. The operator makes no other authority, because a member " +
		"that stops could then not join again. Meanwhile the operator reaches no member; the group goes on, and " +
		"elects its primary itself. Restart no member, and restore the Secret from a backup, with its ownerReferences" +
		remedy(c)}}
}

func authorityEnds(c *v1alpha1.Cluster, ca *pki.CA) core.Problem {
	what, how := "the certificate authority", "put one there that is valid for longer"+remedy(c)
	if ca.EndsInTrust() {
		what = "what verifies the certificate authority, in ca.crt,"
		how = "put the certificate in tls.crt into ca.crt as well, and those that signed it, up to the root"
	}
	return core.Problem{Reason: core.ProblemAuthorityEnds, Message: what + " in " + secretOfAuthority(c) +
		" expires at " + ca.Ends().UTC().Format(time.RFC3339) +
		", and then no instance can reach another: before that, at a quiet time, " + how}
}

// tellsAuthority tells that an authority was put back, and how far it is on its way to another.
func (p *prerequisites) tellsAuthority(c *v1alpha1.Cluster, look authorityLook) (asides []core.Problem) {
	if at := p.authorities.restored(c); !at.IsZero() && time.Since(at) < restoredLife {
		asides = append(asides, core.Problem{Reason: core.ProblemAuthorityRestored, Message: secretOfAuthority(c) +
			" was deleted, and the operator has put it back unchanged. Find out who deletes it" + remedy(c)})
	}
	if !look.wanted.Changes() {
		return asides
	}
	told := core.Problem{Reason: core.ProblemAuthorityChanges, Message: howItChanges(c, look.wanted)}
	switch {
	case look.unsure != nil:
		told.Message += "; it is not known how far the instances are: " + look.unsure.Error()
	case !declared.Topology(&c.Spec).RunsGroup():
		told.Message += "; the operator takes the next step some minutes after the kubelets have updated the Secrets"
	case len(look.awaits) > 0:
		told.Reason = core.ProblemAuthorityAwaits
		told.Message += "; restart all members one by one (change a variable in spec.env). Members that are left: " +
			strings.Join(look.awaits, ", ")
	}
	return append(asides, told)
}

func howItChanges(c *v1alpha1.Cluster, k pki.Kept) string {
	switch {
	case len(k.Next.Cert) > 0:
		return secretOfAuthority(c) + " holds another certificate authority, which signs as soon as every instance " +
			"trusts it"
	case len(k.Lost) > 0:
		return secretOfAuthority(c) + " was deleted, and its key is lost: the instances come to trust another " +
			"certificate authority beside the lost one, and keep their certificates until each of them trusts both"
	default:
		return "another certificate authority signs, and the former one stays trusted until no instance uses a " +
			"certificate of it"
	}
}
