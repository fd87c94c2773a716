package async

import (
	"slices"

	"cnmsql.co/internal/core"
)

// mostAwaited is how many Pods are awaited each by its own name: the status must not grow
// while nobody knows for hours whether any is made.
const mostAwaited = 8

// openable are the Pods that may have become writable in the epoch: the one that
// was promoted, and every other of the holder that was made, or may have been, and may
// take over.
func openable(holder *core.Instance, p *core.Promotion) []string {
	pods := slices.DeleteFunc(slices.Clone(p.Pods), func(name string) bool { return isNotMade(holder, name) })
	if !slices.Contains(pods, p.PodUID) {
		pods = append(pods, p.PodUID)
	}
	pod, known := holder.Pod.Get()
	if !known || !pod.Exists {
		return pods
	}
	pods = slices.DeleteFunc(pods, func(name string) bool {
		return answers(pod, p, name) || isRuledOut(holder, pod, p, name)
	})
	if pod.UID == p.PodUID {
		return pods
	}
	pods = slices.DeleteFunc(pods, func(uid string) bool { return uid == pod.UID })
	r, heard := holder.Report.Get()
	if hasNoData := heard && r.PodUID == pod.UID && holder.SaysEmpty(); mayTakeOver(pod, p) && !hasNoData {
		pods = append(pods, pod.UID)
	}
	return pods
}

// stillOpen are those of them of which the kubelet did not report the end.
func stillOpen(holder *core.Instance, p *core.Promotion) []string {
	return slices.DeleteFunc(openable(holder, p), func(uid string) bool {
		return slices.Contains(p.Ended, uid) || isSaidToHaveEnded(holder, uid)
	})
}

// isSaidToHaveEnded reports whether the kubelet has reported the end of that Pod of an instance.
func isSaidToHaveEnded(in *core.Instance, uid string) bool {
	return slices.Contains(in.EndedPods, uid) ||
		in.Pod.Is(func(pod core.Pod) bool { return pod.Exists && pod.UID == uid && pod.Terminated })
}

// isAnyOpen reports whether one of those Pods of which the kubelet did not report the end may be
// writable now. The present Pod is awaited only for as long as it has no node. It is not writable
// then, but may be once nobody sees it.
func isAnyOpen(holder *core.Instance, p *core.Promotion) bool {
	return slices.ContainsFunc(stillOpen(holder, p), func(name string) bool {
		return !holder.Pod.Is(func(pod core.Pod) bool { return isName(pod, name) })
	})
}

// mayTakeOver reports whether another Pod of the granted primary may become writable in the same
// epoch, because it runs on the same node. The end of the former proves nothing then.
func mayTakeOver(pod core.Pod, p *core.Promotion) bool {
	return pod.Exists && pod.Node != "" && (p.Node == "" || pod.Node == p.Node)
}

// isName reports whether the Pod, and no other, is awaited by that name.
func isName(pod core.Pod, name string) bool {
	n, _ := core.AwaitedNumber(name)
	return n > 0 && pod.Exists && pod.Awaited == name
}

// isNotMade reports whether no Pod of that name was made, or it never had a node. Where several
// Pods had the name, another of them may have been made.
func isNotMade(holder *core.Instance, name string) bool {
	n, many := core.AwaitedNumber(name)
	return n > 0 && !many && slices.Contains(holder.NotMade, name)
}

// answers reports whether the present Pod is the one that was awaited, and where it runs is known.
func answers(pod core.Pod, p *core.Promotion, name string) bool {
	return isName(pod, name) && pod.Node != "" || name == core.PodAwaited && pod.UID != p.PodUID
}

// isRuledOut reports whether the Pod that is awaited by that name takes no writes and never will,
// for the present Pod runs on the node where it would have to, and has the lock on the data. Its
// object was gone before the present one could be made, and so the node's kubelet has told it to
// end, if it was ever there. What was made after the present Pod is not meant: who still sees
// that one may be behind.
func isRuledOut(holder *core.Instance, pod core.Pod, p *core.Promotion, name string) bool {
	r, heard := holder.Report.Get()
	if !heard || r.PodUID != pod.UID || !r.VolumeLocked || r.Data != core.DataPopulated ||
		p.Node == "" || r.Node != p.Node {
		return false
	}
	own, _ := core.AwaitedNumber(pod.Awaited)
	n, _ := core.AwaitedNumber(name)
	return name == core.PodAwaited || n > 0 && n <= own
}

// awaitPod returns the name by which a Pod that is about to be made is awaited, and notes it in the
// status if the Pod is one of the granted primary; "" for any other. A Pod of the granted primary
// may become writable before anybody has seen it, and so the status has its name before it is made.
// Each gets another name, for one that is not seen may have been made all the same.
func (d *decision) awaitPod(in *core.Instance) string {
	p := d.Status.Promotion
	if p == nil || p.Instance != in.Name {
		return ""
	}
	open := 0
	for _, name := range p.Pods {
		n, many := core.AwaitedNumber(name)
		if many {
			return core.AwaitedPod(n)
		}
		if n > 0 {
			open++
		}
	}
	if i := slices.IndexFunc(d.Cluster.Status.Promotion.Pods, func(name string) bool {
		return isNotMade(in, name)
	}); i >= 0 {
		again := d.Cluster.Status.Promotion.Pods[i]
		p.Pods = append(p.Pods, again)
		return again
	}
	p.Awaited++
	name := core.AwaitedPod(p.Awaited)
	if open < mostAwaited {
		p.Pods = append(p.Pods, name)
	} else {
		p.Pods = append(p.Pods, core.AwaitedPods(p.Awaited))
	}
	return name
}
