package operator

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// oneOf is a gauge that is 1 for the present value of a label of each Cluster, and has no series
// for any other. It remembers the value: to look for it among the series of all Clusters takes as
// long as there are many.
type oneOf struct {
	vec *prometheus.GaugeVec

	mu  sync.Mutex
	now map[types.NamespacedName]string
}

func newOneOf(name, label, help string) *oneOf {
	return &oneOf{vec: gaugeOf(name, help, label), now: map[types.NamespacedName]string{}}
}

// set makes value the present one; "" is none. A scrape sees the new one or the former, and never
// neither.
func (g *oneOf) set(of types.NamespacedName, value string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before, was := g.now[of]
	if was && before == value {
		return
	}
	if value != "" {
		g.vec.WithLabelValues(of.Namespace, of.Name, value).Set(1)
		g.now[of] = value
	} else {
		delete(g.now, of)
	}
	if was {
		g.vec.DeleteLabelValues(of.Namespace, of.Name, before)
	}
}
