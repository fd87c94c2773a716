package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/layout"
	"cnmsql.co/internal/observation"
	"cnmsql.co/internal/pki"
	"cnmsql.co/internal/resources"
)

var errNoStream = errors.New("its manager was never reached")

// actor carries effects out.
type actor struct {
	client        client.Client
	live          client.Reader
	prerequisites *prerequisites
	streams       *Streams
	orders        *orders
	requests      *requests
	unmade        *unmadePods
	operatorImage string
	defaultImage  string
}

// failures of effects: commands that instances did not answer are part of the day, and so
// are requests that are under way; what Kubernetes refuses is told to the user. What it refused
// before and nobody has asked it again is told like that, and nothing is hurried for it. What was done to
// an object that somebody had changed meanwhile is a conflict, and no failure: who looks anew does it to
// what the object is by now.
type failures struct{ orders, changes, standing, conflicts []error }

func (f failures) err() error {
	return errors.Join(errors.Join(f.changes...), errors.Join(f.orders...))
}

// act carries effects out: commands to instances side by side, so that one that
// does not answer holds up none of the others, all else in order. What is made goes on beside
// the look if it takes long, and what is deleted does not: whoever is about to be deleted must
// not be chosen for anything meanwhile. A failure
// leaves those to be tried that do not need what failed.
func (a *actor) act(ctx context.Context, c *v1alpha1.Cluster, ca *pki.CA, effects []core.Effect) failures {
	var out failures
	var wait sync.WaitGroup
	var mu sync.Mutex
	var failed []core.Effect
	for _, e := range effects {
		if slices.ContainsFunc(failed, func(f core.Effect) bool { return core.Needs(e, f) }) {
			continue
		}
		if ask := a.asks(c, e); ask != nil {
			wait.Go(func() {
				if err := ask(); err != nil {
					mu.Lock()
					defer mu.Unlock()
					out.orders = append(out.orders, fmt.Errorf("%s: %w", e, err))
				}
			})
			continue
		}
		if err := a.change(ctx, c, ca, e); err != nil {
			failed = append(failed, e)
			mu.Lock()
			out.note(e, err)
			mu.Unlock()
		}
	}
	wait.Wait()
	return out
}

// note notes a change that failed, or is under way.
func (f *failures) note(e core.Effect, err error) {
	var waits *underWayError
	_, prunes := e.(core.DeleteService)
	switch {
	case prunes: // the cluster is whole with it, and nothing is hurried
		f.stands(fmt.Errorf("%s: %w", e, err))
		return
	case isConflict(err):
		f.conflicts = append(f.conflicts, fmt.Errorf("%s: %w", e, err))
		return
	case !errors.As(err, &waits):
		f.changes = append(f.changes, fmt.Errorf("%s: %w", e, err))
		return
	}
	f.orders = append(f.orders, fmt.Errorf("%s: %w", e, err))
	if waits.former != nil {
		f.standing = append(f.standing, fmt.Errorf("%s: %w", e, waits.former))
	}
}

// begin carries effects out beside the caller, who gets what came of them.
func (a *actor) begin(ctx context.Context, c *v1alpha1.Cluster, ca *pki.CA, effects []core.Effect) <-chan failures {
	out := make(chan failures, 1)
	go func() { out <- a.act(ctx, c, ca, effects) }()
	return out
}

// asks returns how an instance is asked for what an effect wants of it; nil when it wants nothing
// of one.
func (a *actor) asks(c *v1alpha1.Cluster, e core.Effect) func() error {
	if e, is := e.(core.ReplaceManager); is {
		return func() error { return a.streams.ReplaceManager(c.Namespace, e.Instance) }
	}
	instance, o := control.OrderOf(e, func(other string) string { return layout.InstanceHost(other, c.Namespace) })
	if instance == "" {
		return nil
	}
	return func() error { return a.command(c, instance, o) }
}

// command gives an instance an order; nil asks it for a report alone.
func (a *actor) command(c *v1alpha1.Cluster, instance string, o control.Order) error {
	cluster, name := client.ObjectKeyFromObject(c), fmt.Sprintf("%s/%s %T %+v", c.Namespace, instance, o, o)
	return a.orders.give(a.streams.ctx, name, func(ctx context.Context) error {
		if o == nil {
			return a.streams.Refresh(ctx, cluster.Namespace, instance)
		}
		return a.streams.Order(ctx, cluster.Namespace, instance, o)
	}, func() { a.streams.wake(cluster) })
}

// change carries out an effect on Kubernetes objects.
func (a *actor) change(ctx context.Context, c *v1alpha1.Cluster, ca *pki.CA, e core.Effect) error {
	switch e := e.(type) {
	case core.CreateVolume:
		return a.createVolume(c, e)
	case core.AdoptVolume:
		return a.adoptVolume(ctx, c, e)
	case core.GrowVolume:
		return a.growVolume(ctx, c, e)
	case core.CreatePod:
		return a.createPod(ctx, c, ca, e)
	case core.DeletePod:
		return a.deletePod(ctx, c, e)
	case core.DeleteInstance:
		return a.deleteInstance(ctx, c, e)
	case core.LabelPod:
		return a.label(ctx, c, e)
	case core.ClearDemote:
		return a.patchPod(ctx, c, e.Instance, "annotations", map[string]any{v1alpha1.AnnotationDemote: nil})
	case core.SeizeLease:
		return a.seizeLease(ctx, c, e)
	case core.ResetLease:
		return a.resetLease(ctx, c, e)
	case core.ReinitInstance:
		return a.reinit(ctx, c, e)
	case core.BindReinit:
		return a.bindReinit(ctx, c, e.Request)
	case core.ClearReinit:
		return a.clearReinit(ctx, c, e.Instance)
	case core.ClearForceQuorum:
		return a.annotate(ctx, c, v1alpha1.AnnotationForceQuorum, nil)
	case core.ClearOverride:
		return a.annotate(ctx, c, v1alpha1.AnnotationAcceptLoss, nil)
	case core.RouteWrites:
		return a.prerequisites.routeWrites(ctx, c, e.Instance)
	case core.DeleteService:
		return a.deleteService(ctx, c, e)
	case core.DeleteCluster:
		_, err := a.deleteOnly(ctx, c, &v1alpha1.Cluster{}, c.Name, e.UID)
		return err
	default:
		return fmt.Errorf("unknown effect %T", e)
	}
}

// The words for requests to make an instance's volume claim and its Pod.
func volumeOf(instance string) string { return "create volume of " + instance }
func podOf(instance string) string    { return "create pod " + instance }

func (a *actor) createVolume(c *v1alpha1.Cluster, e core.CreateVolume) error {
	claim, err := resources.VolumeClaim(c, e.Instance, resources.ServerID(c.UID, e.Ordinal))
	if err != nil {
		return err
	}
	c = c.DeepCopy() // for what goes on beside whoever has it
	return a.request(c, volumeOf(e.Instance), func(ctx context.Context) error {
		return a.forgiven(ctx, c, claim, a.client.Create(ctx, claim, client.FieldOwner(resources.FieldManager)))
	})
}

// forgiven is what came of making an object. If there is one of its name already, it must be
// this Cluster's: a cache that is behind is forgiven, and what is somebody else's is never
// taken over.
func (a *actor) forgiven(ctx context.Context, c *v1alpha1.Cluster, obj client.Object, err error) error {
	if apierrors.IsAlreadyExists(err) {
		return a.prerequisites.untaken(ctx, c, obj)
	}
	return err
}

// createPod makes an instance's Pod, if it may.
func (a *actor) createPod(ctx context.Context, c *v1alpha1.Cluster, ca *pki.CA, e core.CreatePod) error {
	if is, err := a.formerOfPod(c, e.Instance); is {
		a.unmade.noteUnasked(podKeyOf(c, e.Instance), e.Awaited)
		return err
	}
	if err := a.mayCreatePod(ctx, c, ca, e); err != nil {
		a.unmade.noteUnasked(podKeyOf(c, e.Instance), e.Awaited)
		return err
	}
	o := a.podOptions(ctx, c, e.Instance, e.Ordinal)
	o.Awaited, o.Image = e.Awaited, e.Image
	pod := resources.Pod(c, e.Instance, o)
	if slices.Contains(c.Status.FencedInstances, e.Instance) {
		// It was fenced by an annotation of its former Pod.
		pod.Annotations[v1alpha1.AnnotationFencing] = "on"
	}
	return a.askForPod(c, pod)
}

// formerOfPod tells what became of an earlier request for an instance's Pod, or that it, or the
// one for its volume claim, is under way.
func (a *actor) formerOfPod(c *v1alpha1.Cluster, instance string) (is bool, err error) {
	if volume := requestName(c, volumeOf(instance)); a.requests.isUnderWay(volume) {
		return true, a.requests.waiting(volume)
	}
	return a.requests.former(requestName(c, podOf(instance)))
}

// mayCreatePod returns why a Pod must not be created yet, or nil. A Pod mounts its claim by name.
// It is not created before what it needs is there and the claim exists, nor when the claim is
// another's or was kept when its instance was removed.
func (a *actor) mayCreatePod(ctx context.Context, c *v1alpha1.Cluster, ca *pki.CA, e core.CreatePod) error {
	if err := a.prerequisites.instance(ctx, c, ca, e.Instance); err != nil {
		return err
	}
	if err := a.prerequisites.secretsOf(ctx, c, e.Instance); err != nil {
		return err
	}
	claim, err := a.prerequisites.mine(ctx, c, &corev1.PersistentVolumeClaim{}, e.Instance)
	if err != nil {
		return err
	}
	if claim == nil {
		return fmt.Errorf("there is no PersistentVolumeClaim %s yet", e.Instance)
	}
	if resources.IsKept(claim) {
		return fmt.Errorf(
			"the PersistentVolumeClaim %s was kept when its instance was removed, and is no instance's any more",
			e.Instance)
	}
	return nil
}

func (a *actor) podOptions(ctx context.Context, c *v1alpha1.Cluster, instance string,
	ordinal int) resources.PodOptions {
	o := resources.PodOptions{OperatorImage: a.operatorImage, DefaultImage: a.defaultImage,
		ServerID: resources.ServerID(c.UID, ordinal)}
	var claim corev1.PersistentVolumeClaim
	if err := a.client.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: instance}, &claim); err == nil &&
		observation.IsInstances(c, &claim) {
		if id, ok := resources.ServerIDOf(&claim); ok {
			o.ServerID = id
		}
	}
	return o
}

// wanted is what tells the Pod that would be made now from one that is out of date.
func (a *actor) wanted(ctx context.Context, c *v1alpha1.Cluster, instance string, ordinal int) observation.Wanted {
	o := a.podOptions(ctx, c, instance, ordinal)
	made := func(o resources.PodOptions) resources.Made {
		if !c.Spec.InPlaceInstanceManagerUpdates { // nobody asks what it is made from
			return resources.Made{Spec: resources.PodSpecHash(c, instance, o)}
		}
		return resources.MadeNow(c, instance, o)
	}
	return observation.Wanted{Made: made(o), Installer: o.OperatorImage, InPlace: c.Spec.InPlaceInstanceManagerUpdates,
		MadeWith: func(image string) resources.Made {
			o.Image = image
			return made(o)
		}}
}

// deletePod deletes a Pod. One that runs, and is to be recreated from a changed spec, stays where
// Kubernetes would refuse the Pod that takes its place.
func (a *actor) deletePod(ctx context.Context, c *v1alpha1.Cluster, e core.DeletePod) error {
	if e.Reason == core.ReasonRollout {
		if err := a.mayRecreate(ctx, c, e.Instance); err != nil {
			return err
		}
	}
	_, err := a.deleteOnly(ctx, c, &corev1.Pod{}, e.Instance, e.UID)
	return err
}

// deleteOnly deletes the object of this name if it is the one that was meant; uid "" says
// that there was none. It tells whether another one is there: it is left alone.
func (a *actor) deleteOnly(ctx context.Context, c *v1alpha1.Cluster, obj client.Object, name,
	uid string) (another bool, err error) {
	if uid == "" {
		return false, nil
	}
	obj.SetNamespace(c.Namespace)
	obj.SetName(name)
	return deleteThis(ctx, a.client, obj, types.UID(uid))
}

// deleteThis deletes an object if it is still this very one. It tells whether another one is there.
func deleteThis(ctx context.Context, at client.Client, obj client.Object, uid types.UID) (another bool, err error) {
	err = at.Delete(ctx, obj, client.Preconditions{UID: &uid})
	if apierrors.IsConflict(err) {
		return true, nil
	}
	return false, client.IgnoreNotFound(err)
}

// deleteOwned deletes the volume claim and the Pod that an instance had when that was
// decided. The claim goes first: an instance without one is known to be going, and a Pod
// is spared that has another.
func (a *actor) deleteOwned(ctx context.Context, c *v1alpha1.Cluster, instance string,
	o core.Owned) (another bool, err error) {
	if another, err = a.deleteOnly(ctx, c, &corev1.PersistentVolumeClaim{}, instance, o.VolumeUID); another ||
		err != nil {
		return another, err
	}
	return a.deleteOnly(ctx, c, &corev1.Pod{}, instance, o.PodUID)
}

// deleteInstance removes all that belongs to an instance, the volume included unless it is
// to be kept.
func (a *actor) deleteInstance(ctx context.Context, c *v1alpha1.Cluster, e core.DeleteInstance) error {
	if e.KeepVolume {
		if another, err := a.keepVolume(ctx, c, e.Instance, e.Owned.VolumeUID); another || err != nil {
			return err
		}
		e.Owned.VolumeUID = ""
	}
	if another, err := a.deleteOwned(ctx, c, e.Instance, e.Owned); another || err != nil {
		return err
	}
	return a.prerequisites.removeRest(ctx, c, e.Instance)
}

// reinit deletes an instance's volume and Pod, which are recreated under its name.
func (a *actor) reinit(ctx context.Context, c *v1alpha1.Cluster, e core.ReinitInstance) error {
	_, err := a.deleteOwned(ctx, c, e.Instance, e.Owned)
	return err
}

// label sets the operator's two labels of a Pod and nothing else.
func (a *actor) label(ctx context.Context, c *v1alpha1.Cluster, e core.LabelPod) error {
	return a.patchPod(ctx, c, e.Instance, "labels", map[string]any{
		v1alpha1.LabelRole: e.Role, v1alpha1.LabelRoutable: fmt.Sprint(e.Routable)})
}

// patchPod changes the given labels or annotations of an instance's Pod; nil removes one.
// A Pod of the same name that is not the instance's, or another one by now, is left alone.
func (a *actor) patchPod(ctx context.Context, c *v1alpha1.Cluster, name, field string, values map[string]any) error {
	var pod corev1.Pod
	err := a.client.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: name}, &pod)
	if err != nil || !observation.IsInstances(c, &pod) {
		return client.IgnoreNotFound(err)
	}
	_, err = patchMeta(ctx, a.client, &corev1.Pod{}, client.ObjectKeyFromObject(&pod), pod.UID,
		map[string]any{field: values})
	return err
}
