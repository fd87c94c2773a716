package resources

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// ForApply turns an object of this package into what may be sent to server-side
// apply: without the status, and without the nulls that encoding/json writes
// although nobody set anything. Empty maps stay: in a selector "{}" says "all"
// and its absence says "none".
func ForApply(obj runtime.Object) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	delete(fields, "status")
	dropNulls(fields)
	return &unstructured.Unstructured{Object: fields}, nil
}

func dropNulls(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			if item == nil {
				delete(v, key)
				continue
			}
			dropNulls(item)
		}
	case []any:
		for _, item := range v {
			dropNulls(item)
		}
	}
}
