package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/resources"
)

// nameTakenError is the error when an object of a needed name exists and is somebody else's.
type nameTakenError struct {
	kind, name string
	// keptOf is the UID of the deleted Cluster whose data a claim has; "" otherwise.
	keptOf string
}

func (e *nameTakenError) Error() string {
	if e.keptOf != "" {
		return fmt.Sprintf("the %s %s has the data of another Cluster, of UID %s, which was deleted: delete the "+
			"claim if its data is not needed, or give the Cluster another name", e.kind, e.name, e.keptOf)
	}
	return fmt.Sprintf("the %s %s exists and does not belong to this Cluster; delete or rename it, or give the "+
		"Cluster another name", e.kind, e.name)
}

// applier brings objects of a cluster to what they should be, by server-side
// apply with one field manager: what others own is left alone. An object that
// already is as it should be costs no request.
//
// What an object should be is made from the object that was found, and is applied to that
// version of it and to no other: whatever is repeated of it, such as a password, may have been
// changed since it was read, and the cache may be behind.
type applier struct {
	client client.Client
	// live reads past the cache, which holds only objects with our label.
	live    client.Reader
	settled settled
}

// maker makes an object as it should be from the one that was found, nil if there is none.
type maker func(found client.Object) (client.Object, error)

// apply brings an object to what it should be, whatever it is.
func (a *applier) apply(ctx context.Context, c *v1alpha1.Cluster, obj client.Object) error {
	return a.keep(ctx, c, obj, obj.GetName(), func(client.Object) (client.Object, error) { return obj, nil })
}

// keep brings the object of that kind and name to what is made of the one that is found.
func (a *applier) keep(ctx context.Context, c *v1alpha1.Cluster, kind client.Object, name string,
	made maker) error {
	return a.seen(ctx, c, kind, name, func(found client.Object) error {
		obj, err := made(found)
		if err != nil {
			return err
		}
		return a.bring(ctx, c, found, obj)
	})
}

// looks bounds how often an object is looked at that is another one each time.
const looks = 5

// seen has something done to an object as it was found, nil if there is none. It is first looked
// for in the cache. A conflict says that it has changed since, has gone or was made: then the
// API server is asked what it is, and it is done to that.
func (a *applier) seen(ctx context.Context, c *v1alpha1.Cluster, kind client.Object, name string,
	do func(found client.Object) error) (err error) {
	look := a.mine
	for range looks {
		found, failed := look(ctx, c, kind, name)
		if failed != nil {
			return failed
		}
		if err = do(found); !apierrors.IsConflict(err) {
			return err
		}
		look = a.mineNow
	}
	return err
}

// bring applies an object to the version that was found. Ownership is forced only there: where
// none was found, what somebody else has made meanwhile is looked at first.
func (a *applier) bring(ctx context.Context, c *v1alpha1.Cluster, found, obj client.Object) error {
	as, err := settlementOf(found, obj)
	if err != nil || a.settled.has(c, as) {
		return err
	}
	wanted, err := resources.ForApply(obj)
	if err != nil {
		return err
	}
	is, err := isAsWanted(found, obj, wanted)
	if err != nil {
		return err
	}
	if is {
		a.settled.note(c, as)
		return nil
	}
	if err := a.renumber(ctx, found, obj); err != nil {
		return err
	}
	options := []client.ApplyOption{client.FieldOwner(resources.FieldManager)}
	if found != nil {
		// The UID, too: an apply makes an object that is gone, and must not repeat it.
		wanted.SetUID(found.GetUID())
		wanted.SetResourceVersion(found.GetResourceVersion())
		options = append(options, client.ForceOwnership)
	}
	if err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(wanted), options...); err != nil {
		return fmt.Errorf("apply %s %s: %w", wanted.GetKind(), wanted.GetName(), err)
	}
	return nil
}

// isAsWanted reports whether an object that was found, nil if none was, needs no change.
func isAsWanted(found, obj client.Object, wanted *unstructured.Unstructured) (bool, error) {
	if found == nil {
		return false, nil
	}
	found.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	current, err := resources.ForApply(found)
	if err != nil {
		return false, err
	}
	return within(wanted.Object, current.Object) && !outgrown(owned(current), wanted.Object), nil
}

// mine is the object of that kind and name in the Cluster's namespace, nil when there is
// none. One that does not belong to the Cluster is refused.
func (a *applier) mine(ctx context.Context, c *v1alpha1.Cluster, kind client.Object,
	name string) (client.Object, error) {
	found := newOf(kind)
	err := a.client.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: name}, found)
	if apierrors.IsNotFound(err) || err == nil && !resources.Belongs(c, found) {
		return a.mineNow(ctx, c, kind, name) // the cache may be behind
	}
	if err != nil {
		return nil, err
	}
	return found, nil
}

// mineNow is the same by the API server's word.
func (a *applier) mineNow(ctx context.Context, c *v1alpha1.Cluster, kind client.Object,
	name string) (client.Object, error) {
	found := newOf(kind)
	err := a.live.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: name}, found)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	case !resources.Belongs(c, found):
		return nil, &nameTakenError{kind: reflect.TypeOf(kind).Elem().Name(), name: name,
			keptOf: found.GetAnnotations()[v1alpha1.AnnotationClusterUID]}
	}
	return found, nil
}

// newOf is an empty object of a kind.
func newOf(kind client.Object) client.Object {
	return reflect.New(reflect.TypeOf(kind).Elem()).Interface().(client.Object)
}

// patchMeta changes the given metadata, by field, of the very object that was meant; a label or an
// annotation that is nil is removed. It tells whether another one has its name: it is left alone.
func patchMeta(ctx context.Context, to client.Client, obj client.Object, key client.ObjectKey, uid types.UID,
	metadata map[string]any) (another bool, err error) {
	metadata["uid"] = uid
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return false, err
	}
	obj.SetNamespace(key.Namespace)
	obj.SetName(key.Name)
	err = to.Patch(ctx, obj, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(resources.FieldManager))
	if apierrors.IsConflict(err) {
		return true, nil
	}
	return false, client.IgnoreNotFound(err)
}

// untaken is nil unless somebody else has an object of that kind and name.
func (a *applier) untaken(ctx context.Context, c *v1alpha1.Cluster, obj client.Object) error {
	_, err := a.mine(ctx, c, obj, obj.GetName())
	return err
}

// owned are the fields of an object that were applied by us, as its managedFields have
// them: each key is "f:" and a name, or tells an item of a list.
func owned(current *unstructured.Unstructured) map[string]any {
	fields := map[string]any{}
	for _, m := range current.GetManagedFields() {
		if m.Manager == resources.FieldManager && m.Operation == metav1.ManagedFieldsOperationApply &&
			m.FieldsV1 != nil {
			_ = json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) // what cannot be read is not known to be ours
		}
	}
	return fields
}

// outgrown reports whether something was applied that is wanted no longer.
func outgrown(owned map[string]any, wanted any) bool {
	fields, ok := wanted.(map[string]any)
	for key, below := range owned {
		name, isField := strings.CutPrefix(key, "f:")
		if !ok || !isField {
			continue
		}
		value, is := fields[name]
		if deeper, _ := below.(map[string]any); !is || outgrown(deeper, value) {
			return true
		}
	}
	return false
}

// within reports whether everything in wanted is in current, too. Lists must be
// equal in length, for an item too much would be one that nobody wants. What is
// empty and what is absent are the same.
func within(wanted, current any) bool {
	switch w := wanted.(type) {
	case map[string]any:
		c, ok := current.(map[string]any)
		for key := range w {
			if !ok || !within(w[key], c[key]) {
				return false
			}
		}
		return ok || len(w) == 0 && current == nil
	case []any:
		c, ok := current.([]any)
		if len(c) != len(w) || !ok && current != nil {
			return false
		}
		for i := range w {
			if !within(w[i], c[i]) {
				return false
			}
		}
		return true
	default:
		return reflect.DeepEqual(wanted, current)
	}
}
