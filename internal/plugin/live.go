package plugin

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"
)

// askAll asks every instance whose Pod runs, side by side, and the primary once
// more when all have answered (see Facts.Reference).
func askAll(ctx context.Context, ask asking, f *Facts) {
	f.Live = map[string]Live{}
	var names []string
	for _, name := range instanceNames(&f.Cluster.Status) {
		if why := notRunning(f.Pods, name); why != "" {
			f.Live[name] = Live{Problem: why}
			continue
		}
		names = append(names, name)
	}
	for name, w := range ask.all(ctx, names) {
		if w.Forbidden {
			f.Live, f.LiveProblem = nil, "instances were not asked, for that needs the right to create pods/exec: "+
				w.Problem
			return
		}
		f.Live[name] = liveOf(w)
	}
	if holder := f.holder(); f.Live[holder].Report != nil {
		f.Reference = liveOf(ask.one(ctx, holder)).Report
	}
}

func liveOf(w word) Live {
	if r, known := w.Report.Get(); known {
		return Live{Report: &r}
	}
	return Live{Problem: w.Problem}
}

func notRunning(pods map[string]*corev1.Pod, name string) string {
	pod := pods[name]
	switch {
	case pods == nil:
		return ""
	case pod == nil:
		return "its Pod does not exist"
	case pod.Status.Phase != corev1.PodRunning:
		return "its Pod is " + cmp.Or(string(pod.Status.Phase), "Pending")
	default:
		return ""
	}
}
