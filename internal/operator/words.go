package operator

import (
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"cnmsql.co/api/v1alpha1"
)

// wordsPause is the least time between a write of the status and one that changes nothing
// but words. While the primary changes they change with every report, and each write takes
// a busy machine as long as a step of the change itself: the report of which all clients
// wait would find the operator writing.
const wordsPause = 500 * time.Millisecond

// toWrite reports whether the status is to be written now: it differs, and not in words alone a
// moment after it was written last. due is how long those wait then, 0 when none do.
func (s *clusterState) toWrite(before, after *v1alpha1.ClusterStatus, now time.Time) (is bool, due time.Duration) {
	rest := min(wordsPause-now.Sub(s.written), wordsPause)
	switch {
	case apiequality.Semantic.DeepEqual(before, after):
		return false, 0
	case rest > 0 && differsInWords(before, after):
		return false, rest
	}
	return true, 0
}

// differsInWords reports whether two statuses differ at most in what people read: how the
// instances and the cluster as a whole stand, and positions. Nothing is decided from it
// at once.
func differsInWords(before, after *v1alpha1.ClusterStatus) bool {
	return apiequality.Semantic.DeepEqual(withoutWords(before), withoutWords(after))
}

func withoutWords(s *v1alpha1.ClusterStatus) *v1alpha1.ClusterStatus {
	out := s.DeepCopy()
	out.PhaseReason, out.InstancesReported = "", nil
	out.GTIDExecutedByInstance, out.GTIDExecutedUpdatedAt = nil, nil
	for i := range out.Conditions {
		out.Conditions[i].Message = ""
	}
	return out
}
