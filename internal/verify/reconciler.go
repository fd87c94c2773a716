package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/backups"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/verify"
	"cnmsql.co/internal/resources"
	"cnmsql.co/internal/tell"
)

// lookPause is the least time between two looks at a verification that runs, however often its
// Clusters change.
const lookPause = time.Second

// conflictAgain is the pause before a Cluster is looked at again that somebody else changed
// meanwhile.
const conflictAgain = 200 * time.Millisecond

// Reconciler has the backups of Clusters tried.
type Reconciler struct {
	Client client.Client
	// Live reads past the cache: nothing is made or ended on what may be old.
	Live     client.Reader
	Recorder events.EventRecorder
	// Instances asks instances about their tables.
	Instances Asker
	// Lags tells how far instances are behind; nil where nobody knows.
	Lags    backups.Lags
	Metrics *Metrics
	Now     func() time.Time

	mu sync.Mutex
	// memory is of Clusters of which a verification runs.
	memory map[types.NamespacedName]memory
}

// memory is what need not survive the operator.
type memory struct {
	trouble verify.Trouble
	// refused is why Kubernetes refused to make the copy.
	refused string
	// looked is when the verification was looked at last.
	looked time.Time
}

// Reconcile brings the verification of one Cluster a step further.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	c := &v1alpha1.Cluster{}
	err := r.Client.Get(ctx, req.NamespacedName, c)
	if err != nil || c.DeletionTimestamp != nil {
		r.forget(req.NamespacedName, apierrors.IsNotFound(err))
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.Metrics.Observe(c)
	if rests, wake := r.rests(c); rests {
		return ctrl.Result{RequeueAfter: wake}, nil
	}
	wake, err := r.look(ctx, req.NamespacedName)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: conflictAgain}, nil
	}
	return ctrl.Result{RequeueAfter: wake}, err
}

// rests reports whether nothing is to be done, and when to look again then. It is found out
// without asking the API server: Clusters change every few seconds.
func (r *Reconciler) rests(c *v1alpha1.Cluster) (bool, time.Duration) {
	if c.Labels[v1alpha1.LabelVerifies] != "" {
		return true, 0 // a throw-away Cluster itself
	}
	last := c.Status.LastVerification
	if c.Annotations[v1alpha1.AnnotationVerify] != "" || last != nil && (last.EndedAt == nil || last.ClusterUID != "") {
		soon := r.recall(client.ObjectKeyFromObject(c)).looked.Add(lookPause).Sub(r.Now())
		return soon > 0, soon
	}
	f := verify.Facts{HasData: true}
	schedule := r.schedule(c, &f)
	isNew := !apiequality.Semantic.DeepEqual(schedule.status, c.Status.VerificationSchedule)
	return f.Slot.IsZero() && !isNew, schedule.Wake
}

// look reads what is known, decides, and carries it out.
func (r *Reconciler) look(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	c := &v1alpha1.Cluster{}
	if err := r.Live.Get(ctx, key, c); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	f, err := r.facts(ctx, c)
	if err != nil {
		return 0, err
	}
	schedule := r.schedule(c, &f)
	plan := verify.Decide(f)
	if err := r.publish(ctx, c, plan, schedule); err != nil {
		return 0, err
	}
	r.remember(key, plan, "")
	if err := r.carryOut(ctx, c, f, plan); err != nil {
		return 0, err
	}
	return earliest(plan.Wake, schedule.Wake), nil
}

func earliest(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// publish writes the status, if it changed, on the condition that the Cluster is still the one
// that was looked at; then the events are told.
func (r *Reconciler) publish(ctx context.Context, c *v1alpha1.Cluster, plan verify.Plan, schedule schedulePlan) error {
	before := c.DeepCopy()
	writeRecord(&c.Status, plan.Record)
	c.Status.VerificationSchedule = schedule.status
	setCondition(c, plan)
	if !apiequality.Semantic.DeepEqual(before.Status, c.Status) {
		err := r.Client.Status().Patch(ctx, c, client.MergeFromWithOptions(before,
			client.MergeFromWithOptimisticLock{}))
		if err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	r.Metrics.Observe(c)
	for _, e := range append(schedule.events, plan.Events...) {
		tell.Event(r.Recorder, c, e)
	}
	return nil
}

// carryOut does what was decided.
func (r *Reconciler) carryOut(ctx context.Context, c *v1alpha1.Cluster, f verify.Facts, plan verify.Plan) error {
	var failed []error
	if plan.TakeRequest {
		failed = append(failed, r.takeRequest(ctx, c, f.Request))
	}
	if plan.Create {
		failed = append(failed, r.create(ctx, c, plan))
	}
	if plan.Delete {
		failed = append(failed, r.delete(ctx, c, f.Copy.UID))
	}
	return errors.Join(failed...)
}

// takeRequest removes the annotation, if it still says what was answered.
func (r *Reconciler) takeRequest(ctx context.Context, c *v1alpha1.Cluster, request string) error {
	if c.Annotations[v1alpha1.AnnotationVerify] != request {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": c.ResourceVersion, "annotations": map[string]any{v1alpha1.AnnotationVerify: nil}}})
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(r.Client.Patch(ctx, c, client.RawPatch(types.MergePatchType, patch)))
}

// create makes the copy. What Kubernetes refuses is remembered: it ends the verification.
func (r *Reconciler) create(ctx context.Context, c *v1alpha1.Cluster, plan verify.Plan) error {
	err := r.Client.Create(ctx, resources.ThrowAway(c, targetOf(plan.Record)),
		client.FieldOwner(resources.FieldManager))
	switch {
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
		r.remember(client.ObjectKeyFromObject(c), plan, err.Error())
		return nil
	case apierrors.IsAlreadyExists(err):
		return nil // the next look tells whose it is
	case err != nil:
		return fmt.Errorf("create Cluster %s: %w", verify.CopyName(c.Name), err)
	}
	return nil
}

// delete deletes the copy, if it is still the one that was looked at.
func (r *Reconciler) delete(ctx context.Context, c *v1alpha1.Cluster, uid string) error {
	it := &v1alpha1.Cluster{}
	it.Namespace, it.Name = c.Namespace, verify.CopyName(c.Name)
	of := types.UID(uid)
	err := r.Client.Delete(ctx, it, client.Preconditions{UID: &of})
	if apierrors.IsConflict(err) {
		return nil // another one has the name by now
	}
	return client.IgnoreNotFound(err)
}

func (r *Reconciler) recall(key types.NamespacedName) memory {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.memory[key]
}

func (r *Reconciler) remember(key types.NamespacedName, plan verify.Plan, refused string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.memory == nil {
		r.memory = map[types.NamespacedName]memory{}
	}
	if delete(r.memory, key); plan.Record.Phase.Runs() {
		r.memory[key] = memory{trouble: plan.Trouble, refused: refused, looked: r.Now()}
	}
}

// forget drops what is kept of a Cluster; its metrics, too, if it is gone.
func (r *Reconciler) forget(key types.NamespacedName, gone bool) {
	r.mu.Lock()
	delete(r.memory, key)
	r.mu.Unlock()
	if gone {
		r.Metrics.Forget(key)
	}
}

// targetOf is where the restore ends: where the sample was taken; "" for the latest.
func targetOf(r verify.Record) string {
	if r.Sample == nil {
		return ""
	}
	return strings.ReplaceAll(r.Sample.Executed, "\n", "")
}

func reasonOf(p verify.Plan) core.Reason {
	if p.Record.Phase == verify.Succeeded {
		return core.ReasonVerificationSucceeded
	}
	return p.Record.Reason
}
