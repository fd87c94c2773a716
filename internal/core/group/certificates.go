package group

import (
	"strings"

	"cnmsql.co/internal/core"
)

// tellCertificates tells which members go by certificates of before, for a member goes by those that it
// joined with. It is an event once, and not for each of them: they are restarted one after another.
func (d *decision) tellCertificates() {
	var rejoin, severed []string
	for i := range d.Instances {
		in := &d.Instances[i]
		v, heard := viewOf(in)
		switch {
		case !heard:
		case v.Certificates == core.CertificatesSevered:
			severed = append(severed, in.Name)
		case v.Certificates != core.CertificatesInTime:
			rejoin = append(rejoin, in.Name)
		}
	}
	if len(severed) > 0 {
		d.Remark(core.ReasonMembersSevered, "", "these members joined the group with certificates that have expired, "+
			"or that the present authority did not sign: "+strings.Join(severed, ", ")+"; a member that "+
			"stops cannot join again. Restart no member; at a quiet time, stop all and reboot the group")
	} else if len(rejoin) > 0 {
		d.Remark(core.ReasonMembersToRejoin, "", "these members joined the group with certificates that expire soon, "+
			"or that a former authority signed: "+strings.Join(rejoin, ", ")+
			"; restart all members one by one (change "+
			"a variable in spec.env)")
	}
}
