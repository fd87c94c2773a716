package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	managers      *managers
	operatorImage string
	defaultImage  string
}

// failures of effects: commands that instances did not answer are part of the
// day; what Kubernetes refuses is told to the user. What it refused before and
// nobody has asked it again is told like that, and nothing is hurried for it.
type failures struct{ orders, changes, standing []error }

func (f failures) err() error {
	return errors.Join(errors.Join(f.changes...), errors.Join(f.orders...))
}

// act carries effects out: commands to instances side by side, so that one that
// does not answer holds up none of the others, all else in order. A failure
// leaves the others to be tried.
func (a *actor) act(ctx context.Context, c *v1alpha1.Cluster, ca *pki.CA, effects []core.Effect) failures {
	var out failures
	var wait sync.WaitGroup
	var mu sync.Mutex
	for _, e := range effects {
		if verb, instance, order, ok := a.order(c, e); ok {
			wait.Go(func() {
				if err := a.command(ctx, c, instance, verb, order); err != nil {
					mu.Lock()
					defer mu.Unlock()
					out.orders = append(out.orders, fmt.Errorf("%s: %w", e, err))
				}
			})
			continue
		}
		if err := a.change(ctx, c, ca, e); err != nil {
			out.changes = append(out.changes, fmt.Errorf("%s: %w", e, err))
		}
	}
	wait.Wait()
	return out
}

// What is asked of an instance and is no order: a report, and to give way to another
// binary.
const (
	verbRefresh control.Verb = ""
	verbReplace control.Verb = "replace"
)

// order translates an effect into a command to an instance.
func (a *actor) order(c *v1alpha1.Cluster, e core.Effect) (verb control.Verb, instance string, o control.Order, ok bool) {
	switch e := e.(type) {
	case core.Demote:
		return control.VerbDemote, e.Instance, control.Order{Epoch: e.Epoch}, true
	case core.FreezeIO:
		return control.VerbFreezeIO, e.Instance, control.Order{Epoch: e.Epoch}, true
	case core.CloneFrom:
		return control.VerbCloneFrom, e.Instance, control.Order{Epoch: e.Epoch, Donor: layout.InstanceHost(e.Donor, c.Namespace)}, true
	case core.RestartInPlace:
		return control.VerbRestartInPlace, e.Instance, control.Order{Epoch: e.Epoch}, true
	case core.SetAcks:
		return control.VerbSetAcks, e.Instance, control.Order{Epoch: e.Epoch, Acks: e.Acks}, true
	case core.SetGroupPrimary:
		return control.VerbSetGroupPrimary, e.Instance, control.Order{Epoch: e.Epoch, Member: e.UUID}, true
	case core.ForceMembers:
		return control.VerbForceMembers, e.Instance, control.Order{Epoch: e.Epoch, Members: strings.Split(e.Members, ",")}, true
	case core.RebootGroup:
		return control.VerbRebootGroup, e.Instance, control.Order{Epoch: e.Epoch}, true
	case core.Refresh:
		return verbRefresh, e.Instance, control.Order{}, true
	case core.ReplaceManager:
		return verbReplace, e.Instance, control.Order{}, true
	default:
		return "", "", control.Order{}, false
	}
}

func (a *actor) command(ctx context.Context, c *v1alpha1.Cluster, instance string, verb control.Verb, o control.Order) error {
	switch verb {
	case verbRefresh:
		return a.streams.Refresh(ctx, c.Namespace, instance)
	case verbReplace:
		return a.managers.replace(a.streams, types.NamespacedName{Namespace: c.Namespace, Name: instance})
	}
	return a.streams.Order(ctx, c.Namespace, instance, verb, o)
}

// change carries out an effect on Kubernetes objects.
func (a *actor) change(ctx context.Context, c *v1alpha1.Cluster, ca *pki.CA, e core.Effect) error {
	switch e := e.(type) {
	case core.CreateVolume:
		claim, err := resources.VolumeClaim(c, e.Instance, resources.ServerID(c.UID, e.Ordinal))
		if err != nil {
			return err
		}
		return a.create(ctx, claim)
	case core.CreatePod:
		if err := a.prerequisites.instance(ctx, c, ca, e.Instance); err != nil {
			return err
		}
		pod := resources.Pod(c, e.Instance, a.podOptions(ctx, c, e.Instance, e.Ordinal))
		if slices.Contains(c.Status.FencedInstances, e.Instance) {
			// It was fenced by an annotation of its former Pod.
			pod.Annotations[v1alpha1.AnnotationFencing] = "on"
		}
		return a.create(ctx, pod)
	case core.DeletePod:
		return a.deletePod(ctx, c, e)
	case core.DeleteInstance:
		return a.deleteInstance(ctx, c, e.Instance)
	case core.LabelPod:
		return a.label(ctx, c, e)
	case core.ClearDemote:
		return a.patchPod(ctx, c, e.Instance, "annotations", map[string]any{v1alpha1.AnnotationDemote: nil})
	case core.SeizeLease:
		return a.seizeLease(ctx, c, e)
	case core.ReinitInstance:
		return a.reinit(ctx, c, e.Instance)
	case core.ClearReinit:
		return a.clearReinit(ctx, c, e.Instance)
	case core.ClearForceQuorum:
		return a.annotate(ctx, c, v1alpha1.AnnotationForceQuorum, nil)
	case core.ClearOverride:
		return a.annotate(ctx, c, v1alpha1.AnnotationAcceptLoss, nil)
	case core.RouteWrites:
		return a.prerequisites.services(ctx, c, resources.WriteServices(c, e.Instance))
	default:
		return fmt.Errorf("unknown effect %T", e)
	}
}

func (a *actor) create(ctx context.Context, obj client.Object) error {
	err := a.client.Create(ctx, obj, client.FieldOwner(resources.FieldManager))
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (a *actor) podOptions(ctx context.Context, c *v1alpha1.Cluster, instance string, ordinal int) resources.PodOptions {
	o := resources.PodOptions{OperatorImage: a.operatorImage, DefaultImage: a.defaultImage, ServerID: resources.ServerID(c.UID, ordinal)}
	var claim corev1.PersistentVolumeClaim
	if err := a.client.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: instance}, &claim); err == nil {
		if id, ok := resources.ServerIDOf(&claim); ok {
			o.ServerID = id
		}
	}
	return o
}

// wanted is what tells the Pod that would be made now from one that is out of date.
func (a *actor) wanted(ctx context.Context, c *v1alpha1.Cluster, instance string, ordinal int) observation.Wanted {
	o := a.podOptions(ctx, c, instance, ordinal)
	return observation.Wanted{Hash: resources.PodSpecHash(c, instance, o), Installer: o.OperatorImage, InPlace: c.Spec.InPlaceInstanceManagerUpdates}
}

func (a *actor) deletePod(ctx context.Context, c *v1alpha1.Cluster, e core.DeletePod) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: e.Instance}}
	uid := types.UID(e.UID)
	err := a.client.Delete(ctx, pod, client.Preconditions{UID: &uid})
	if apierrors.IsConflict(err) {
		return nil // it is another Pod by now
	}
	return client.IgnoreNotFound(err)
}

// deleteInstance removes all that belongs to an instance, the volume included.
func (a *actor) deleteInstance(ctx context.Context, c *v1alpha1.Cluster, instance string) error {
	claim, err := resources.VolumeClaim(c, instance, 0)
	if err != nil {
		return err
	}
	// The claim goes first: an instance without one is known to be going.
	objs := []client.Object{
		claim, resources.Pod(c, instance, resources.PodOptions{}),
		resources.InstanceService(c, instance), resources.RoleBinding(c, instance), resources.Role(c, instance), resources.ServiceAccount(c, instance),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: resources.TLSSecret(instance)}},
	}
	var all []error
	for _, obj := range objs {
		all = append(all, client.IgnoreNotFound(a.client.Delete(ctx, obj)))
	}
	return errors.Join(all...)
}

// reinit deletes an instance's volume and Pod, which are made anew under its name.
func (a *actor) reinit(ctx context.Context, c *v1alpha1.Cluster, instance string) error {
	var all []error
	for _, obj := range []client.Object{&corev1.PersistentVolumeClaim{}, &corev1.Pod{}} {
		obj.SetNamespace(c.Namespace)
		obj.SetName(instance)
		all = append(all, client.IgnoreNotFound(a.client.Delete(ctx, obj)))
	}
	return errors.Join(all...)
}

// label sets the operator's two labels of a Pod and nothing else.
func (a *actor) label(ctx context.Context, c *v1alpha1.Cluster, e core.LabelPod) error {
	return a.patchPod(ctx, c, e.Instance, "labels", map[string]any{
		v1alpha1.LabelRole: e.Role, v1alpha1.LabelRoutable: fmt.Sprint(e.Routable)})
}

// patchPod changes the given labels or annotations of a Pod; nil removes one.
func (a *actor) patchPod(ctx context.Context, c *v1alpha1.Cluster, name, field string, values map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{field: values}})
	if err != nil {
		return err
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name}}
	err = a.client.Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(resources.FieldManager))
	return client.IgnoreNotFound(err)
}
