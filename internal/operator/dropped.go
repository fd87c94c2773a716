package operator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// dropped is a status of which the API server did not keep all: it drops, without a word, what its
// CustomResourceDefinition does not have.
type dropped struct {
	kept   *v1alpha1.ClusterStatus
	fields []string
}

// droppedOf is what of a status was not kept; nil if all was.
func droppedOf(sent, kept *v1alpha1.ClusterStatus) (*dropped, error) {
	fields, err := differing(sent, kept)
	if len(fields) == 0 || err != nil {
		return nil, err
	}
	return &dropped{kept.DeepCopy(), fields}, nil
}

// differing names the fields in which two statuses differ as they are written.
func differing(one, other *v1alpha1.ClusterStatus) ([]string, error) {
	var parts [2]map[string]json.RawMessage
	for i, status := range []*v1alpha1.ClusterStatus{one, other} {
		text, err := json.Marshal(status)
		if err == nil {
			err = json.Unmarshal(text, &parts[i])
		}
		if err != nil {
			return nil, err
		}
	}
	var fields []string
	for name := range maps.Keys(parts[1]) {
		if _, both := parts[0][name]; !both {
			fields = append(fields, "status."+name)
		}
	}
	for name, value := range parts[0] {
		if !bytes.Equal(value, parts[1][name]) {
			fields = append(fields, "status."+name)
		}
	}
	slices.Sort(fields)
	return fields, nil
}

// problem tells the user.
func (d *dropped) problem() *core.Problem {
	if d == nil {
		return nil
	}
	return &core.Problem{Reason: core.ProblemCRDOutdated, Message: fmt.Sprintf("the API server does not keep all that "+
		"the operator writes (%s): the CustomResourceDefinition clusters.mysql.cnmsql.co is of another release than "+
		"the operator, which cannot fail over safely; apply that of the operator's release, see docs/upgrades.md",
		strings.Join(d.fields, ", "))}
}

// droppedAgain is after what time it is tried whether the API server keeps all by now.
const droppedAgain = time.Minute

// repeats reports whether to write a status would change nothing but what was not kept a moment ago.
// It would not be kept again, and each look finds once more that it is not there: neither it nor its
// events are told again at once.
func (d *dropped) repeats(stored, next *v1alpha1.ClusterStatus, written, now time.Time) bool {
	if d == nil || now.Sub(written) >= droppedAgain || !apiequality.Semantic.DeepEqual(stored, d.kept) {
		return false
	}
	fields, err := differing(stored, next)
	isNew := func(name string) bool { return !slices.Contains(d.fields, name) }
	return err == nil && !slices.ContainsFunc(fields, isNew)
}
