package draft

import (
	"fmt"
	"strings"

	"cnmsql.co/internal/core"
)

// foreignTold bounds how many foreign objects are named.
const foreignTold = 3

// TellForeign names what carries an instance's labels and is not the Cluster's. It is
// taken for no instance and never touched; but a Pod of them is led clients to by the
// Services, which go by labels.
func (d *Draft) TellForeign() {
	if pods := d.Cluster.ForeignPods; len(pods) > 0 {
		d.Remark(core.ReasonForeignPod, strings.Join(pods, ","), listed("Pod", "Pods", pods)+
			" of an instance, without belonging to this Cluster: the operator leaves it alone, but the Services may "+
			"send clients there; delete it, or remove its labels mysql.cnmsql.co/…")
	}
	if claims := d.Cluster.ForeignVolumes; len(claims) > 0 {
		d.Remark(core.ReasonForeignObject, strings.Join(claims, ","), listed("PersistentVolumeClaim",
			"PersistentVolumeClaims", claims)+" of an instance, without belonging to this Cluster: the operator "+
			"neither uses nor deletes it; remove its labels mysql.cnmsql.co/…")
	}
}

func listed(one, many string, names []string) string {
	if len(names) == 1 {
		return "the " + one + " " + names[0] + " carries the labels"
	}
	more := ""
	if n := len(names) - foreignTold; n > 0 {
		names, more = names[:foreignTold], fmt.Sprintf(" and %d more", n)
	}
	return "the " + many + " " + strings.Join(names, ", ") + more + " carry the labels"
}
