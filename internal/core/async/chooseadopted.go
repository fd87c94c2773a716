package async

import (
	"fmt"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/draft"
)

// chooseAdopted promotes one of those whose volumes were kept of a deleted Cluster. From then on the cluster
// counts as one that had a primary.
func (d *decision) chooseAdopted() {
	lead, accepted, others := d.ChooseAdopted(d.mayLack)
	if lead == nil {
		return
	}
	because := proven{proof: core.ProofAdopted, evidence: fmt.Sprintf("the Cluster of UID %s was deleted; all "+
		"instances with kept volumes answer, and none takes writes", d.Status.AdoptedFrom)}
	if accepted {
		because = proven{proof: core.ProofAcceptedLoss, evidence: "a human accepted the loss of writes that " +
			lead.Name +
			" does not hold"}
		d.Warn(core.ReasonOverride, lead.Name+" is promoted because a human chose it; transactions that it lacks "+
			"stay on the volumes of the others")
	}
	for _, name := range others {
		d.Status.Diverged = append(draft.Without(d.Status.Diverged, name), name)
	}
	if r, serves := lead.Serving(); serves {
		d.grant(voter{in: lead, report: r, holds: r.Server.Holds()}.elected(), because, 0)
	}
	d.Status.EstablishedAt = d.Now
	d.Doing("promoting " + lead.Name)
}
