package async

import (
	"fmt"
	"slices"
	"time"

	"cnmsql.co/internal/core"
)

// former adds a volume that a deleted Cluster of this name has left, and what its instance would say.
func (s *script) former(a args) {
	v := core.FormerVolume{Instance: a.name, UID: "volume-" + a.name}
	truth := core.Report{Instance: a.name, Data: core.DataPopulated, Server: &core.Server{UUID: "uuid-of-" + a.name,
		SuperReadOnly: true}}
	for _, key := range a.keys {
		switch key {
		case "of":
			v.Of = a.vals[key]
		case "removed":
			v.Removed = true
		default:
			s.must(setReport(&truth, key, a.vals[key]))
		}
	}
	s.w.cluster.FormerVolumes = append(s.w.cluster.FormerVolumes, v)
	s.w.former[a.name] = truth
}

// reinit has a human ask that an instance is given its data anew.
func (s *script) reinit(a args) {
	r := core.ReinitRequest{Instance: a.name, Volume: a.vals["volume"]}
	if epoch := a.vals["epoch"]; epoch != "" {
		_, err := fmt.Sscan(epoch, &r.Epoch)
		s.must(err)
	}
	s.w.cluster.Reinit = append(s.w.cluster.Reinit, r.Marked(a.vals["diverged"] != "", a.vals["unheard"] != ""))
}

// acceptLoss has a human choose who becomes primary, whatever is lost.
func (s *script) acceptLoss(a args) {
	word := core.Override{To: a.name, Epoch: s.w.cluster.Status.Epoch}
	if epoch := a.vals["epoch"]; epoch != "" {
		_, err := fmt.Sscan(epoch, &word.Epoch)
		s.must(err)
	}
	s.w.cluster.Override = &word
}

// decideSeen is the plan for what was observed.
func (s *script) decideSeen() string {
	o := *s.seen
	d := decide(&o)
	s.coverage.look(s.t, d)
	return printPlan(*s.seen, d.Plan)
}

func (s *script) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	s.must(err)
	return d
}

// setNode says what Kubernetes has of the node of an instance. One that is gone or out of service has been off
// for long, unless it lives.
func (s *script) setNode(in *inst, is []string) {
	in.node = core.Node{Exists: is[0] != "gone", OutOfService: is[0] == "out-of-service", Draining: is[0] == "draining",
		NotReady: is[0] == "not-ready"}
	if is[0] == "draining" || slices.Contains(is, "lives") {
		return
	}
	in.cut = true
	s.w.lose(in)
	s.w.manage()
	s.w.lease.UnchangedSince = s.w.now.Add(-core.LeaseTTL)
}
