package operator

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// present is a gauge that is 1 for each present value of a label of each Cluster, and has no series
// for any other. It remembers the values: to look for them among the series of all Clusters takes as
// long as there are many.
type present struct {
	vec *prometheus.GaugeVec

	mu  sync.Mutex
	now map[types.NamespacedName][]string
}

func newPresent(name, label, help string) *present {
	return &present{vec: gaugeOf(name, help, label), now: map[types.NamespacedName][]string{}}
}

// set makes values the present ones; "" is none. A scrape that comes between sees a new one or the
// former, and never neither.
func (g *present) set(of types.NamespacedName, values ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before, now := g.now[of], []string(nil)
	for _, value := range values {
		if value == "" || slices.Contains(now, value) {
			continue
		}
		now = append(now, value)
		if !slices.Contains(before, value) {
			g.vec.WithLabelValues(of.Namespace, of.Name, value).Set(1)
		}
	}
	for _, value := range before {
		if !slices.Contains(now, value) {
			g.vec.DeleteLabelValues(of.Namespace, of.Name, value)
		}
	}
	if g.now[of] = now; now == nil {
		delete(g.now, of)
	}
}
