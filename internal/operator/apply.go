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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/resources"
)

// nameTakenError: an object of a needed name exists and is somebody else's.
type nameTakenError struct{ kind, name string }

func (e *nameTakenError) Error() string {
	return fmt.Sprintf("the %s %s exists and does not belong to this Cluster; delete or rename it, or give the Cluster another name", e.kind, e.name)
}

// applier brings objects of a cluster to what they should be, by server-side
// apply with one field manager: what others own is left alone. An object that
// already is as it should be costs no request.
type applier struct {
	client client.Client
	// live reads past the cache, which holds only objects with our label.
	live client.Reader
}

func (a *applier) apply(ctx context.Context, c *v1alpha1.Cluster, obj client.Object) error {
	wanted, err := resources.ForApply(obj)
	if err != nil {
		return err
	}
	current, err := a.current(ctx, c, obj)
	if err != nil {
		return err
	}
	if current != nil && within(wanted.Object, current.Object) && !outgrown(owned(current), wanted.Object) {
		return nil
	}
	if err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(wanted), client.FieldOwner(resources.FieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("apply %s %s: %w", wanted.GetKind(), wanted.GetName(), err)
	}
	return nil
}

// current returns the object as it is, nil when there is none. An object that
// another controls is refused.
func (a *applier) current(ctx context.Context, c *v1alpha1.Cluster, obj client.Object) (*unstructured.Unstructured, error) {
	found := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
	key := client.ObjectKeyFromObject(obj)
	err := a.client.Get(ctx, key, found)
	if apierrors.IsNotFound(err) {
		err = a.live.Get(ctx, key, found)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !metav1.IsControlledBy(found, c) {
		return nil, &nameTakenError{kind: obj.GetObjectKind().GroupVersionKind().Kind, name: key.Name}
	}
	found.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	return resources.ForApply(found)
}

// owned are the fields of an object that were applied by us, as its managedFields have
// them: each key is "f:" and a name, or tells an item of a list.
func owned(current *unstructured.Unstructured) map[string]any {
	fields := map[string]any{}
	for _, m := range current.GetManagedFields() {
		if m.Manager == resources.FieldManager && m.Operation == metav1.ManagedFieldsOperationApply && m.FieldsV1 != nil {
			_ = json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) // what cannot be read is not known to be ours
		}
	}
	return fields
}

// outgrown tells whether something was applied that is wanted no longer.
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

// within tells whether everything in wanted is in current, too. Lists must be
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
