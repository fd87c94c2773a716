package operator

import (
	"bytes"
	"encoding/json"
	"fmt"
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
	sent, kept *v1alpha1.ClusterStatus
	fields     []string
}

// droppedOf is what of a status was not kept; nil if all was.
func droppedOf(sent, kept *v1alpha1.ClusterStatus) (*dropped, error) {
	var before, after map[string]json.RawMessage
	for status, into := range map[*v1alpha1.ClusterStatus]*map[string]json.RawMessage{sent: &before, kept: &after} {
		text, err := json.Marshal(status)
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			return nil, err
		}
	}
	var fields []string
	for name, value := range before {
		if !bytes.Equal(value, after[name]) {
			fields = append(fields, "status."+name)
		}
	}
	if len(fields) == 0 {
		return nil, nil
	}
	slices.Sort(fields)
	return &dropped{sent.DeepCopy(), kept.DeepCopy(), fields}, nil
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

// before is what a status that stands in the API server is taken for, when it is asked whether
// another has to be written: what was sent a moment ago and not kept is not sent again at once.
func (d *dropped) before(status *v1alpha1.ClusterStatus, written, now time.Time) *v1alpha1.ClusterStatus {
	if d != nil && now.Sub(written) < droppedAgain && apiequality.Semantic.DeepEqual(status, d.kept) {
		return d.sent
	}
	return status
}
