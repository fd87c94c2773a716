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
		"with it the Secrets of the members' certificates. No other authority is made: no member that stops could " +
		"join again. The operator reaches no member meanwhile; the group goes on, and elects its primary itself. " +
		"Restart nobody, and restore the Secret from a backup, with its ownerReferences" + remedy(c)}}
}

func authorityEnds(c *v1alpha1.Cluster, ca *pki.CA) core.Problem {
	what, how := "the certificate authority", "put a longer one there"+remedy(c)
	if ca.EndsInTrust() {
		what = "what verifies the certificate authority, in ca.crt,"
		how = "put the certificate in tls.crt into ca.crt, too, and those that have signed it up to the root"
	}
	return core.Problem{Reason: core.ProblemAuthorityEnds, Message: what + " in " + secretOfAuthority(c) +
		" ends at " + ca.Ends().UTC().Format(time.RFC3339) +
		", and then no instance reaches another: before that, at a quiet time, " + how}
}

// tellsAuthority tells that an authority was put back, and how far it is on its way to another.
func (p *prerequisites) tellsAuthority(c *v1alpha1.Cluster, look authorityLook) (asides []core.Problem) {
	if at := p.authorities.restored(c); !at.IsZero() && time.Since(at) < restoredLife {
		asides = append(asides, core.Problem{Reason: core.ProblemAuthorityRestored, Message: secretOfAuthority(c) +
			" was deleted, and is put back as this operator knew it: nothing has changed. Find out who deletes it" +
			remedy(c)})
	}
	if !look.wanted.Changes() {
		return asides
	}
	told := core.Problem{Reason: core.ProblemAuthorityChanges, Message: howItChanges(c, look.wanted)}
	switch {
	case look.unsure != nil:
		told.Message += "; how far the instances are is not known: " + look.unsure.Error()
	case !declared.Topology(&c.Spec).RunsGroup():
		told.Message += "; the next step is taken some minutes after the kubelets have brought the Secrets"
	case len(look.awaits) > 0:
		told.Reason = core.ProblemAuthorityAwaits
		told.Message += "; restart all members one by one (change a variable in spec.env). Awaited: " +
			strings.Join(look.awaits, ", ")
	}
	return append(asides, told)
}

func howItChanges(c *v1alpha1.Cluster, k pki.Kept) string {
	switch {
	case len(k.Next.Cert) > 0:
		return "another certificate authority is in " + secretOfAuthority(c) +
			", and signs when each instance trusts it"
	case len(k.Lost) > 0:
		return secretOfAuthority(c) + " was gone, and nobody knew its key: another certificate authority is trusted " +
			"beside the lost one, whose certificates are kept until each instance trusts both"
	default:
		return "another certificate authority signs, and the former one is trusted until no instance shows a " +
			"certificate of it"
	}
}
