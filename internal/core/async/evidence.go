package async

// keepEvidence puts into the status what an operator that starts anew could not
// hear again: the reported end of the Pod that may be writable, and its manager's
// promise.
func (d *decision) keepEvidence() {
	p, holder := d.s.Promotion, d.holder()
	if p == nil {
		return
	}
	if hasEnded(holder, p) {
		p.EndedPod = p.PodUID
	}
	word := holder.Report
	if !word.Known() {
		word = holder.LastWord
	}
	if r, _ := word.Get(); promises(word, p, p.Epoch+1) {
		p.FencedBelow = max(p.FencedBelow, r.FencedBelow)
	}
	if pod, known := holder.Pod.Get(); known && pod.Exists && pod.UID == p.PodUID && pod.Terminated {
		p.EndedPod = p.PodUID
	}
}

// keepSize keeps the smallest number of instances of which the primary may count
// a majority: it grows when the primary says so, and shrinks before it can know.
func (d *decision) keepSize() {
	p := d.s.Promotion
	if p == nil {
		return
	}
	if r, known := d.holder().Report.Get(); known && r.WritableEpoch == p.Epoch {
		p.Size = max(p.Size, r.ClusterSize)
	}
	p.Size = min(p.Size, max(d.o.Cluster.Wanted, len(d.s.InstanceNames), 1))
}
