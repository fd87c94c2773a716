package sim

import (
	"slices"
	"time"

	"cnmsql.co/internal/core"
)

// kind of object that is watched by itself.
type kind int

const (
	kindCluster kind = iota
	kindPod
	kindVolume
	kindNode
	kindRoute
	kindLease
	kinds
)

// Objects are immutable: a change is another object under the same name.
type (
	clusterObject struct {
		generation int64
		spec       clusterSpec
		status     core.Status
	}
	clusterSpec struct {
		instances  int
		durability core.Durability
		lease      bool
		follows    string
		// size is that of volumes, in gibibytes.
		size int64
		// template stands for all that is in a Pod besides.
		template int
		// override and reinit are a human's annotations.
		override *core.Override
		reinit   []core.ReinitRequest
	}
	podObject struct {
		uid, instance, node string
		awaited             string
		deleting            bool
		template            podTemplate
		started             bool
		ready               bool
		ended               bool // the container ended and the Pod is being deleted
		role                string
		routable            bool
		demote, fence       bool
	}
	// podTemplate is what the hash of a Pod's spec would be of.
	podTemplate struct {
		template int
		mode     core.DurabilityMode
	}
	volumeObject struct {
		uid, instance string
		deleting      bool
		bound         bool
		asks          int64 // in gibibytes
		data          *volume
	}
	nodeObject struct {
		outOfService, draining bool
	}
	routeObject struct{ primary string }
	leaseObject struct {
		uid, holder string
		epoch       int64
		renewals    int
	}
)

// change is one entry of the API server's log; object nil is a deletion.
type change struct {
	rv     int64
	at     time.Duration
	name   string
	object any
}

// apiServer holds the objects, and all that they ever were.
type apiServer struct {
	w        *world
	rv       int64
	objects  [kinds]map[string]any
	versions [kinds]map[string]int64
	logs     [kinds][]change
	watches  [kinds][]*watch
}

func newAPIServer(w *world) *apiServer {
	a := &apiServer{w: w}
	for k := range kinds {
		a.objects[k], a.versions[k] = map[string]any{}, map[string]int64{}
	}
	a.put(kindCluster, clusterName, &clusterObject{generation: 1, spec: clusterSpec{instances: w.conf.instances,
		size: 1, durability: w.conf.durability, lease: w.conf.lease, follows: w.conf.follows}})
	a.put(kindRoute, "rw", &routeObject{})
	a.makeLease()
	return a
}

func get[T any](a *apiServer, k kind, name string) *T {
	o, _ := a.objects[k][name].(*T)
	return o
}

func (a *apiServer) cluster() *clusterObject { return get[clusterObject](a, kindCluster, clusterName) }
func (a *apiServer) pod(name string) *podObject {
	return get[podObject](a, kindPod, name)
}
func (a *apiServer) volume(name string) *volumeObject {
	return get[volumeObject](a, kindVolume, name)
}
func (a *apiServer) node(name string) *nodeObject { return get[nodeObject](a, kindNode, name) }
func (a *apiServer) lease() *leaseObject          { return get[leaseObject](a, kindLease, "primary") }

// put and remove change an object and tell the watches.
func (a *apiServer) put(k kind, name string, object any) {
	a.rv++
	a.objects[k][name], a.versions[k][name] = object, a.rv
	a.log(k, name, object)
}

func (a *apiServer) remove(k kind, name string) {
	if _, exists := a.objects[k][name]; !exists {
		return
	}
	a.rv++
	delete(a.objects[k], name)
	delete(a.versions[k], name)
	a.log(k, name, nil)
}

func (a *apiServer) log(k kind, name string, object any) {
	a.logs[k] = append(a.logs[k], change{rv: a.rv, at: a.w.now, name: name, object: object})
	for _, v := range a.watches[k] {
		v.notify()
	}
}

// updateCluster changes the Cluster if it still has that version; 0 is any.
func (a *apiServer) updateCluster(version int64, f func(*clusterObject)) bool {
	if version != 0 && a.versions[kindCluster][clusterName] != version {
		a.w.cover.count("api", "conflict")
		return false
	}
	c := *a.cluster()
	f(&c)
	a.put(kindCluster, clusterName, &c)
	a.w.truth.clusterChanged(&c)
	return true
}

// updatePod changes a Pod, if it is still that one; uid "" is any.
func (a *apiServer) updatePod(name, uid string, f func(*podObject)) bool {
	p := a.pod(name)
	if p == nil || uid != "" && p.uid != uid {
		return false
	}
	c := *p
	f(&c)
	if c != *p {
		a.put(kindPod, name, &c)
	}
	return true
}

func (a *apiServer) updateVolume(name string, f func(*volumeObject)) {
	if v := a.volume(name); v != nil {
		c := *v
		f(&c)
		if c != *v {
			a.put(kindVolume, name, &c)
		}
	}
}

func (a *apiServer) updateNode(name string, f func(*nodeObject)) {
	if n := a.node(name); n != nil {
		c := *n
		f(&c)
		if c != *n {
			a.put(kindNode, name, &c)
		}
	}
}

// createPod schedules it, too: where its volume is, or anywhere. It is refused when there is
// one, or no volume.
func (a *apiServer) createPod(instance, awaited string) bool {
	v := a.volume(instance)
	if a.pod(instance) != nil || v == nil || v.deleting {
		return false
	}
	c := a.cluster()
	p := &podObject{uid: a.w.name("pod"), instance: instance, awaited: awaited, template: podTemplate{c.spec.template,
		c.spec.durability.Mode}}
	p.node = a.schedule(v)
	a.put(kindPod, instance, p)
	if p.node == "" {
		a.w.at(2*time.Second, nowhere, func() { a.scheduleLater(instance, p.uid) })
	}
	return true
}

// scheduleLater gives a node to a Pod for which there was none. It looks every two seconds, until
// there is one or the Pod is gone.
func (a *apiServer) scheduleLater(instance, uid string) {
	p, v := a.pod(instance), a.volume(instance)
	if p == nil || p.uid != uid || v == nil {
		return
	}
	if node := a.schedule(v); node != "" {
		a.updatePod(instance, uid, func(p *podObject) { p.node = node })
		return
	}
	a.w.at(2*time.Second, nowhere, func() { a.scheduleLater(instance, uid) })
}

func (a *apiServer) schedule(v *volumeObject) string {
	if v.data.node != "" && !a.w.conf.network {
		return v.data.node
	}
	if a.w.noRoom && v.data.node == "" {
		return ""
	}
	var fit []string
	for _, n := range a.w.nodes {
		if o := a.node(n.name); o != nil && !o.draining && !o.outOfService && !a.hasPod(n.name) {
			fit = append(fit, n.name)
		}
	}
	if len(fit) == 0 {
		for _, n := range a.w.nodes {
			if o := a.node(n.name); o != nil && !o.outOfService {
				fit = append(fit, n.name)
			}
		}
	}
	if len(fit) == 0 {
		return ""
	}
	node := fit[a.w.rnd.IntN(len(fit))]
	if a.w.stays && slices.Contains(fit, v.data.node) {
		node = v.data.node
	}
	if !a.w.conf.network {
		v.data.node = node // where the first Pod goes is where the volume is made
	}
	return node
}

func (a *apiServer) hasPod(node string) bool {
	for _, name := range sortedKeys(a.objects[kindPod]) {
		if a.pod(name).node == node {
			return true
		}
	}
	return false
}

// deletePod asks for a Pod's end; its kubelet removes the object when it has
// ended. By force, or without a kubelet, the object goes at once.
func (a *apiServer) deletePod(name, uid string, force bool) {
	p := a.pod(name)
	if p == nil || uid != "" && p.uid != uid {
		return
	}
	if force || p.node == "" {
		a.remove(kindPod, name)
		a.finishVolume(name)
		return
	}
	a.updatePod(name, uid, func(p *podObject) { p.deleting = true })
}

// deleteVolume asks for a claim's end, which waits for its Pod's.
func (a *apiServer) deleteVolume(name string) {
	a.updateVolume(name, func(v *volumeObject) { v.deleting = true })
	a.finishVolume(name)
}

// deleteOwned asks for the end of the volume and the Pod that were meant, if they are still
// the instance's; data that has diverged is not missed.
func (a *apiServer) deleteOwned(name string, meant core.Owned, diverged bool) {
	if v := a.volume(name); meant.VolumeUID != "" && v != nil {
		if v.uid != meant.VolumeUID {
			return
		}
		v.data.removed = v.data.removed || !v.deleting && !diverged
		a.deleteVolume(name)
	}
	if meant.PodUID != "" {
		a.deletePod(name, meant.PodUID, false)
	}
}

func (a *apiServer) finishVolume(name string) {
	if v := a.volume(name); v != nil && v.deleting && a.pod(name) == nil {
		a.remove(kindVolume, name)
		v.data.destroy()
	}
}

func (a *apiServer) createVolume(instance string) bool {
	if a.volume(instance) != nil {
		return false
	}
	uid := a.w.name("volume")
	a.put(kindVolume, instance, &volumeObject{uid: uid, instance: instance, bound: true, asks: a.cluster().spec.size,
		data: newVolume(a.w, instance, uid)})
	return true
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
