package operator

import (
	"crypto/sha256"
	"encoding/json"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
)

// settlement is one version of an object, and what was wanted of it.
type settlement struct {
	what    settledKey
	uid     types.UID
	version string
	wanted  [sha256.Size]byte
}

type settledKey struct {
	kind reflect.Type
	name string
}

// settlementOf is zero of an object that was not found.
func settlementOf(found, wanted client.Object) (settlement, error) {
	if found == nil {
		return settlement{}, nil
	}
	text, err := json.Marshal(wanted)
	return settlement{what: settledKey{reflect.TypeOf(wanted), wanted.GetName()}, uid: found.GetUID(),
		version: found.GetResourceVersion(), wanted: sha256.Sum256(text)}, err
}

// settled remembers which objects were found to be as they should be. The same version of an
// object and the same wish compare as they did before; to compare all of a cluster's objects
// costs more than all else of a look at one that is at rest.
type settled struct {
	mu  sync.Mutex
	all map[types.NamespacedName]map[settledKey]settlement
}

func (s *settled) has(c *v1alpha1.Cluster, as settlement) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return as.version != "" && s.all[client.ObjectKeyFromObject(c)][as.what] == as
}

func (s *settled) note(c *v1alpha1.Cluster, as settlement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := client.ObjectKeyFromObject(c)
	if s.all == nil {
		s.all = map[types.NamespacedName]map[settledKey]settlement{}
	}
	if s.all[key] == nil {
		s.all[key] = map[settledKey]settlement{}
	}
	s.all[key][as.what] = as
}

// forget drops what is kept of a Cluster that is gone.
func (s *settled) forget(cluster types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, cluster)
}
