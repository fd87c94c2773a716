package operator

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/topology"
	"cnmsql.co/internal/observation"
	"cnmsql.co/internal/pki"
	"cnmsql.co/internal/resources"
	"cnmsql.co/internal/tell"
)

const (
	// mendAgain is when something that the user has to mend is looked at again.
	mendAgain = 3 * time.Second
	// preparedLife is how long the Secrets, roles and Services of a cluster are assumed
	// unchanged while its primary changes. Checking them takes a busy machine longer than
	// the change itself.
	preparedLife = 10 * time.Second
	// restingLife is how long they are assumed so while Kubernetes tells of no change of any
	// of them. What it does not tell of are a user's Secrets, and certificates that expire.
	restingLife = 30 * time.Second
	// operatorTLSLife is how long one client certificate of the operator is used. What is left of its life is how
	// far the operator's clock may be behind those of the instances.
	operatorTLSLife = pki.OperatorLife / 2
)

// Reconciler drives one cluster at a time: observe, decide, publish, act.
type Reconciler struct {
	Client   client.Client
	Live     client.Reader
	Recorder events.EventRecorder
	Metrics  *Metrics

	streams       *Streams
	prerequisites *prerequisites
	observer      *observer
	actor         *actor

	writes *statusWrites

	clusters *clusterStates
}

// Reconcile looks at one cluster until its plan has nothing more to do at once.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	c, err := r.cluster(ctx, req.NamespacedName)
	if c == nil || err != nil {
		return ctrl.Result{}, r.tellUnread(ctx, req.NamespacedName, err)
	}
	if c.DeletionTimestamp != nil || r.endsWithNamespace(ctx, c) {
		r.Metrics.Deleting(req.NamespacedName)
		return r.freeVolumes(ctx, c)
	}
	r.Metrics.Meets(req.NamespacedName)
	ca, problem := r.prepare(ctx, c)
	for range core.PassesAtOnce {
		next, again, err := r.pass(ctx, &c, ca, problem)
		if apierrors.IsConflict(err) {
			if c, err = r.reread(ctx, c); c == nil || err != nil {
				return ctrl.Result{}, err
			}
			continue
		}
		if err != nil {
			return ctrl.Result{}, err
		}
		if !again {
			return ctrl.Result{RequeueAfter: next}, nil
		}
	}
	return ctrl.Result{RequeueAfter: core.TurnOver}, nil
}

// pass observes, decides, publishes and acts once.
func (r *Reconciler) pass(ctx context.Context, c **v1alpha1.Cluster, ca *pki.CA,
	problem *core.Problem) (next time.Duration, again bool, err error) {
	r.clusters.notePrimary(*c)
	if err := r.listen(ctx, *c, ca); err != nil {
		return 0, false, err
	}
	if is, err := r.isFirstContact(*c); is || err != nil {
		return core.FirstContact, false, err // a word wakes it earlier
	}
	o, plan, err := r.decide(ctx, *c, problem)
	if err != nil {
		return 0, false, err
	}
	r.clusters.noteRest(*c, plan.IsAtRest())
	r.Metrics.Observe(*c, plan)
	r.Metrics.ObserveAuthority(*c, ca)
	follow, owned := r.ownVolumes(ctx, *c, o.Cluster.KeptVolumes) // before the generation counts as observed
	ahead, rest := plan.Ahead()
	begun := r.actor.begin(ctx, *c, ca, ahead)
	due, err := r.publish(ctx, c, o, plan, follow)
	early := <-begun
	var tooMany *tooManyWritesError
	if errors.As(err, &tooMany) {
		return tooMany.wait, false, nil // what has to be written down first is not done
	}
	if err != nil {
		return 0, false, err
	}
	r.Metrics.Published(*c, plan)
	done := r.actor.act(ctx, *c, ca, rest)
	done.changes = append(append(done.changes, early.changes...), owned...)
	done.conflicts = append(done.conflicts, early.conflicts...)
	done.repeat(plan)
	done.stands(r.prerequisites.additionalServices(ctx, *c))
	conflict := r.state(*c).conflict(&done)
	r.noteFailure(ctx, *c, done)
	if conflict != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("another client changed an object in the meantime; the operator tries again "+
			"immediately",
			"error", conflict.Error())
		return 0, false, conflict
	}
	next = plan.LookIn(done.err() != nil || !follow)
	if problem != nil {
		next = min(next, mendAgain)
	}
	if due > 0 {
		next = min(next, due)
	}
	return next, plan.GoesOn(len(done.orders) > 0), nil
}

// isFirstContact reports whether too little was heard yet to decide. The status is read for that
// only until enough was.
func (r *Reconciler) isFirstContact(c *v1alpha1.Cluster) (bool, error) {
	key := client.ObjectKeyFromObject(c)
	if r.streams.HasMet(key) {
		return false, nil
	}
	status, err := observation.StatusFrom(&c.Status)
	return err == nil && r.streams.FirstContact(key, &status), err
}

// decide makes a plan from what is observed. A promotion that rests on what
// Kubernetes says of the former primary is decided once more from what the API
// server says now; that is rare enough to be asked for.
func (r *Reconciler) decide(ctx context.Context, c *v1alpha1.Cluster,
	problem *core.Problem) (core.Observation, core.Plan, error) {
	o, err := r.observer.observe(ctx, c, cmp.Or(r.state(c).dropped.problem(), problem))
	if err != nil {
		return o, core.Plan{}, err
	}
	state := r.state(c)
	o.Cluster.Failed, o.Carried = state.failed, state.carried
	o.Cluster.Asides = slices.Concat(state.asides, o.Cluster.Asides)
	plan := topology.Decide(o)
	if plan.GrantsByKubernetesWord(o) {
		if err := r.observer.confirm(ctx, c, &o); err != nil {
			return o, plan, err
		}
		plan = topology.Decide(o)
	}
	state.carried = plan.Carried
	return o, plan, nil
}

// prepare ensures what a cluster needs besides its instances. What was there a while ago will
// do while Kubernetes tells of no change; and while nobody takes writes, what was there a
// moment ago will, but for the record that whoever is promoted has to take.
func (r *Reconciler) prepare(ctx context.Context, c *v1alpha1.Cluster) (*pki.CA, *core.Problem) {
	state := r.state(c)
	have, changes := state.ready, r.clusters.changes(client.ObjectKeyFromObject(c))
	state.ready = preparation{}
	isSame := have.ca != nil && have.of == preparedFor(c)
	isEnough := have.problem == nil && have.changes == changes && time.Since(have.at) <= restingLife ||
		r.isUrgent(c) && time.Since(have.at) <= have.life()
	if !isSame || !isEnough || r.lacksLease(c) {
		ca, problem := r.ensure(ctx, c)
		have = preparation{ca: ca, problem: problem, of: preparedFor(c), at: time.Now(), changes: changes}
	}
	state.ready = have
	return have.ca, have.problem
}

// isUrgent reports whether the primary changes, or does not take writes. A Cluster without a
// promotion is not urgent.
func (r *Reconciler) isUrgent(c *v1alpha1.Cluster) bool {
	p := c.Status.Promotion
	if p == nil {
		return false
	}
	return c.Status.Operation != nil || !r.streams.isPrimary(c.Namespace, p.Instance)
}

// lacksLease reports whether the Cluster should have a Lease, and the record was not there when it
// was seen last.
func (r *Reconciler) lacksLease(c *v1alpha1.Cluster) bool {
	return resources.Lease(c) != nil && r.observer.leases.isMissing(leaseKey(client.ObjectKeyFromObject(c)))
}

func (r *Reconciler) ensure(ctx context.Context, c *v1alpha1.Cluster) (*pki.CA, *core.Problem) {
	ca, asides, err := r.prerequisites.ensure(ctx, c)
	r.state(c).asides = asides
	if err == nil {
		return ca, nil
	}
	return ca, problemFrom(err)
}

// listen keeps a status stream to every instance that has an address, and ends
// those that have nobody at their other end.
func (r *Reconciler) listen(ctx context.Context, c *v1alpha1.Cluster, ca *pki.CA) error {
	if ca == nil {
		return nil
	}
	conf, err := r.clusterTLS(c, ca)
	if err != nil {
		return err
	}
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, those(c)); err != nil {
		return err
	}
	key, members := client.ObjectKeyFromObject(c), c.Status.InstanceNames
	var keep []string
	if p := c.Status.Promotion; p != nil {
		keep = []string{p.Instance} // its word is a proof, even after its Pod is gone
	}
	belong := slices.Concat(keep, members)
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !isToBeHeard(c, pod, belong) {
			continue
		}
		r.streams.Keep(key, pod.Name, endpoint{podUID: string(pod.UID), address: pod.Status.PodIP, tls: conf})
		keep = append(keep, pod.Name)
	}
	r.streams.Tidy(key, keep, members)
	return nil
}

// isToBeHeard reports whether the Pod is an instance of the cluster whose manager can be reached.
// A Pod that was taken out of the cluster and is going is not heard.
func isToBeHeard(c *v1alpha1.Cluster, pod *corev1.Pod, belong []string) bool {
	return observation.IsInstances(c, pod) && pod.Status.PodIP != "" && !observation.HasEnded(pod) &&
		(pod.DeletionTimestamp == nil || slices.Contains(belong, pod.Name))
}

func (r *Reconciler) clusterTLS(c *v1alpha1.Cluster, ca *pki.CA) (*tls.Config, error) {
	state, sum := r.state(c), sha256.Sum256(ca.Trust())
	if have := state.tls; have.conf != nil && have.ca == sum && have.isInTime(time.Now()) {
		return have.conf, nil
	}
	conf, err := ca.OperatorTLS(time.Now())
	if err != nil {
		return nil, err
	}
	state.tls = clusterTLS{ca: sum, made: time.Now(), conf: conf}
	return conf, nil
}

// cluster returns the newest Cluster that is known: the cache may be behind what
// the operator itself wrote last. nil when it does not exist.
func (r *Reconciler) cluster(ctx context.Context, key types.NamespacedName) (*v1alpha1.Cluster, error) {
	var c v1alpha1.Cluster
	err := r.Client.Get(ctx, key, &c)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	// Another Cluster of the same name must not inherit what was heard of the
	// former one's instances. Pods end, and wake this, when their Cluster is forgotten already.
	if known := r.clusters.uid(key); known != c.UID || c.UID == "" {
		if known != "" || err != nil { // of one that could never be read no UID is known
			r.forget(key)
		}
		r.observer.ended.keepOnly(key, c.UID)
		r.observer.unmade.keepOnly(key, c.UID)
	}
	if err != nil {
		return nil, nil
	}
	state := r.clusters.of(key)
	state.uid = c.UID
	if mine := state.latest; mine != nil && newer(mine.ResourceVersion, c.ResourceVersion) {
		return mine.DeepCopy(), nil
	}
	state.latest = nil
	return c.DeepCopy(), nil
}

func (r *Reconciler) state(c *v1alpha1.Cluster) *clusterState {
	return r.clusters.of(client.ObjectKeyFromObject(c))
}

// forget drops all that is kept of a Cluster but its Pods'.
func (r *Reconciler) forget(key types.NamespacedName) {
	r.clusters.drop(key)
	r.streams.ForgetCluster(key)
	r.prerequisites.forget(key)
	r.writes.forget(key)
	r.observer.leases.forget(key)
	r.Metrics.Forget(key)
}

// reread gets a Cluster from the API server after a conflict. It is nil where this look has nobody to
// go on for: the Cluster is gone, is being deleted, or is another one of its name. What Kubernetes
// tells of that wakes the next look.
func (r *Reconciler) reread(ctx context.Context, former *v1alpha1.Cluster) (*v1alpha1.Cluster, error) {
	var c v1alpha1.Cluster
	key := client.ObjectKeyFromObject(former)
	if err := r.Live.Get(ctx, key, &c); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if c.UID != former.UID || c.DeletionTimestamp != nil {
		return nil, nil
	}
	r.clusters.of(key).latest = c.DeepCopy()
	return &c, nil
}

// newer compares resource versions, which Kubernetes defines to be comparable
// as decimal numbers.
func newer(a, b string) bool {
	return len(a) > len(b) || len(a) == len(b) && a > b
}

// publish writes the status, if it changed, on the condition that the Cluster is
// still the one that was observed; then the events are told. Words alone may wait: due is
// when they are to be written, 0 when none are left. The generation counts as observed when
// the claims follow it: a user may delete the Cluster then.
func (r *Reconciler) publish(ctx context.Context, c **v1alpha1.Cluster, o core.Observation,
	plan core.Plan, follow bool) (due time.Duration, err error) {
	next := (*c).DeepCopy()
	observation.WriteStatus(&next.Status, plan.Status)
	describe(&next.Status, *c, o, plan)
	if !follow {
		next.Status.ObservedGeneration = (*c).Status.ObservedGeneration
	}
	describeArchive(&next.Status, *c, o, r.backedBy(ctx, *c))
	r.state(*c).noteArchiving(*c, o.Now)
	doubtArchive(&next.Status, *c, o, r.state(*c).archives)
	describeRestore(&next.Status, *c, o)
	noteImage(next, o, r.actor.defaultImage)
	shorten(&next.Status)
	state, now := r.state(next), time.Now()
	if state.dropped.repeats(&(*c).Status, &next.Status, state.written, now) {
		*c = next
		return 0, nil
	}
	isToWrite, due := state.toWrite(&(*c).Status, &next.Status, now)
	if due > 0 && len(plan.Events) > 0 { // which tell of it now
		isToWrite, due = true, 0
	}
	if isToWrite {
		if err := r.write(ctx, next, o); err != nil {
			return 0, err
		}
	}
	state.logDecision(ctrl.LoggerFrom(ctx), &(*c).Status, plan)
	r.tellArchive(next, (*c).Status.Conditions)
	r.tellRestore(next, (*c).Status.Conditions)
	if due > 0 {
		return due, nil
	}
	*c = next
	for _, e := range plan.Events {
		r.tell(next, e)
	}
	return 0, nil
}

// tell makes an event about a Cluster, and counts it.
func (r *Reconciler) tell(c client.Object, e core.Event) {
	tell.Event(r.Recorder, c, e)
	r.Metrics.Told(client.ObjectKeyFromObject(c), e)
}

// write replaces the status by that of next, with the positions of now.
func (r *Reconciler) write(ctx context.Context, next *v1alpha1.Cluster, o core.Observation) error {
	if err := r.writes.take(client.ObjectKeyFromObject(next)); err != nil {
		return err
	}
	notePositions(&next.Status, o)
	sent, state := next.Status.DeepCopy(), r.state(next)
	err := r.Client.Status().Update(ctx, next)
	if err == nil {
		state.dropped, err = droppedOf(sent, &next.Status)
	}
	if err != nil {
		return err
	}
	state.latest, state.written = next.DeepCopy(), time.Now()
	return nil
}

// noteFailure remembers what Kubernetes refused, and tells it when it is new.
func (r *Reconciler) noteFailure(ctx context.Context, c *v1alpha1.Cluster, f failures) {
	if err := f.err(); err != nil {
		ctrl.LoggerFrom(ctx).Info("some effects failed; the operator tries again", "error", err.Error())
	}
	text := ""
	if err := together(slices.Concat(f.standing, f.changes)...); err != nil {
		text = err.Error()
	}
	state := r.state(c)
	before, now := state.failed, tell.WithoutAddresses(text)
	state.failed = now
	if text != "" && now != before {
		r.tell(c, core.Event{Warning: true, Reason: core.ReasonActionFailed, Message: "could not " + text})
	}
}
