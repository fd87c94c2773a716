package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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
	wanted, err := fields(obj)
	if err != nil {
		return err
	}
	current, err := a.current(ctx, c, obj)
	if err != nil {
		return err
	}
	if current != nil && within(wanted, current) {
		return nil
	}
	u := &unstructured.Unstructured{Object: wanted}
	if err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(resources.FieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("apply %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return nil
}

// current returns the object as it is, nil when there is none. An object that
// another controls is refused.
func (a *applier) current(ctx context.Context, c *v1alpha1.Cluster, obj client.Object) (map[string]any, error) {
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
	return fields(found)
}

// fields are an object's own fields, without status and what only the server sets.
func fields(obj client.Object) (map[string]any, error) {
	text, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, err
	}
	unstructured.RemoveNestedField(out, "status")
	unstructured.RemoveNestedField(out, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(out, "metadata", "managedFields")
	return runtime.DeepCopyJSON(out), nil
}

// within tells whether everything in wanted is in current, too. Lists must be
// equal in length, for an item too much would be one that nobody wants.
func within(wanted, current any) bool {
	switch w := wanted.(type) {
	case map[string]any:
		c, ok := current.(map[string]any)
		for key := range w {
			if !ok || !within(w[key], c[key]) {
				return false
			}
		}
		return ok
	case []any:
		c, ok := current.([]any)
		if !ok || len(c) != len(w) {
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
