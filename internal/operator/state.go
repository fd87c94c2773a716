package operator

import (
	"crypto/sha256"
	"crypto/tls"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/cores"
	"cnmsql.co/internal/pki"
)

// clusterState is what the operator keeps of one Cluster from one look at it to the next.
// Two looks at one Cluster never overlap, so that only the table of them is locked.
type clusterState struct {
	uid types.UID
	// since is when this operator first looked at it.
	since time.Time
	// latest is the Cluster as the operator itself wrote it last; the cache may be behind.
	latest *v1alpha1.Cluster
	// written is when that was.
	written time.Time
	// dropped is what the API server did not keep of the status that was written last.
	dropped *dropped
	// unread is the version of it that could not be read, and was told.
	unread string
	// failed is what could not be carried out last.
	failed string
	// conflicts is how many looks in a row have ended in one.
	conflicts int
	carried   core.Carried
	tls       clusterTLS
	ready     preparation
	// followed is the generation that all claims follow, by the API server's word.
	followed int64
	// asides are what was found wrong when that was looked for last, and hinders nothing.
	asides []core.Problem
	// archives is since when this operator has the Cluster archive; before, nobody could tell of it.
	archives time.Time
	// effects are those of the last plan.
	effects []core.Effect
}

// preparation is that all a cluster needs besides its instances was found or made, or why not.
type preparation struct {
	ca      *pki.CA
	problem *core.Problem
	of      prepared
	at      time.Time
	// changes is how many of them Kubernetes had told of before.
	changes int
}

// life is for how long it will do while nobody takes writes: to ask for each object again and again
// that was refused holds up whoever waits for a failover.
func (p preparation) life() time.Duration {
	if p.problem != nil {
		return mendAgain
	}
	return preparedLife
}

// prepared is what of a Cluster tells what it needs.
type prepared struct {
	generation  int64
	established bool
	instances   string
	// asks is for another authority.
	asks string
}

func preparedFor(c *v1alpha1.Cluster) prepared {
	return prepared{c.Generation, c.Status.EstablishedAt != nil, strings.Join(c.Status.InstanceNames, ","),
		c.Annotations[v1alpha1.AnnotationNewAuthority]}
}

// clusterTLS is the operator's client configuration for one cluster.
type clusterTLS struct {
	ca   [sha256.Size]byte
	made time.Time
	conf *tls.Config
}

// isInTime reports whether it is used at a moment. Wall clocks are compared, for the certificate goes by
// them: a clock that was set right afterwards, in either direction, is no reason to keep what it made.
func (t clusterTLS) isInTime(now time.Time) bool {
	age := now.Round(0).Sub(t.made.Round(0))
	return 0 <= age && age < operatorTLSLife
}

// clusterStates is the table of them. What it has of a Cluster ends with that Cluster:
// another of the same name starts again.
type clusterStates struct {
	mu  sync.Mutex
	all map[types.NamespacedName]*clusterState
	// changed counts the changes of each Cluster's objects, whoever makes them.
	changed map[types.NamespacedName]int
	// primaries are those that are promoted, as they were when each was looked at.
	primaries map[types.NamespacedName]string
	// busy are those that are not at rest.
	busy map[types.NamespacedName]bool
	// rest gives back the cores that the operator has while there is work for them; nil while it has one.
	rest func()
}

// few is how many Clusters at rest one core is enough for.
const few = 10

func newClusterStates() *clusterStates {
	return &clusterStates{all: map[types.NamespacedName]*clusterState{}, changed: map[types.NamespacedName]int{},
		primaries: map[types.NamespacedName]string{}, busy: map[types.NamespacedName]bool{}}
}

// noteRest notes whether a Cluster is at rest.
func (s *clusterStates) noteRest(c *v1alpha1.Cluster, rests bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key := client.ObjectKeyFromObject(c); rests {
		delete(s.busy, key)
	} else {
		s.busy[key] = true
	}
	s.takeCores()
}

// takeCores takes all cores while a Cluster is not at rest, or there are many.
func (s *clusterStates) takeCores() {
	switch work := len(s.busy) > 0 || len(s.all) > few; {
	case work && s.rest == nil:
		s.rest = cores.UseAll()
	case !work && s.rest != nil:
		s.rest()
		s.rest = nil
	}
}

// noteChange notes that one of a Cluster's objects is another than it was.
func (s *clusterStates) noteChange(obj client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key := clusterOf(obj).NamespacedName; s.all[key] != nil {
		s.changed[key]++
	}
}

// changes is how many there were.
func (s *clusterStates) changes(key types.NamespacedName) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed[key]
}

// changesAre has changes of one kind of objects noted. They are noted before they wake
// anybody.
func (s *clusterStates) changesAre() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool {
		s.noteChange(obj)
		return true
	})
}

// of is the state of a Cluster, made when there is none.
func (s *clusterStates) of(key types.NamespacedName) *clusterState {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[key] == nil {
		s.all[key] = &clusterState{since: time.Now()}
		s.takeCores()
	}
	return s.all[key]
}

// uid is that of the Cluster of which there is a state, "" when there is none.
func (s *clusterStates) uid(key types.NamespacedName) types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[key] == nil {
		return ""
	}
	return s.all[key].uid
}

func (s *clusterStates) drop(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, key)
	delete(s.changed, key)
	delete(s.primaries, key)
	delete(s.busy, key)
	s.takeCores()
}

// notePrimary notes who is promoted.
func (s *clusterStates) notePrimary(c *v1alpha1.Cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := c.Status.Promotion; p != nil {
		s.primaries[client.ObjectKeyFromObject(c)] = p.Instance
	}
}

// primary is who was promoted, "" when nobody was.
func (s *clusterStates) primary(key types.NamespacedName) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.primaries[key]
}
