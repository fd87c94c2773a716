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
		d.Remark(core.ReasonMembersSevered, "", "the certificates by which these joined the group have ended, or "+
			"are of another authority than those in the files: "+strings.Join(severed, ", ")+"; a member that "+
			"stops is not admitted again. Restart nobody; at a quiet time, stop all and reboot the group")
	} else if len(rejoin) > 0 {
		d.Remark(core.ReasonMembersToRejoin, "", "the certificates by which these joined the group end soon, or are "+
			"not of the authority of now: "+strings.Join(rejoin, ", ")+"; restart all members one by one (change "+
			"a variable in spec.env)")
	}
}
