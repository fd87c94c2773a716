package draft

import (
	"slices"
	"strings"

	"cnmsql.co/internal/core"
)

// TellTaintLeft names the instances that answer from nodes with the taint out-of-service: whoever set it said by
// that, that nothing runs there any more, and what it proves is believed again when the instance is not heard.
func (d *Draft) TellTaintLeft() {
	var names, nodes []string
	for i := range d.Instances {
		in := &d.Instances[i]
		r, answers := in.Report.Get()
		if !answers || r.Node == "" || !in.Node.Is(func(n core.Node) bool { return n.OutOfService }) ||
			!in.Pod.Is(func(p core.Pod) bool { return p.Exists && p.UID == r.PodUID && p.Node == r.Node }) {
			continue
		}
		if p := d.Status.Promotion; p != nil && p.Instance == in.Name && p.Node != r.Node {
			continue // the node is that of the Pod that was promoted
		}
		names = append(names, in.Name)
		if !slices.Contains(nodes, r.Node) {
			nodes = append(nodes, r.Node)
		}
	}
	if len(names) == 0 {
		return
	}
	d.Remark(core.ReasonTaintLeft, strings.Join(names, ","), strings.Join(names, ", ")+" answers from a node with the "+
		"taint out-of-service, which says that nothing runs there: when it is mended, take the taint off (kubectl "+
		"taint node "+strings.Join(nodes, " ")+" node.kubernetes.io/out-of-service-)")
}
