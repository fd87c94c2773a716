package instance

import (
	"context"
	"io"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core/agent"
)

// slowKube answers with the Cluster as it was when it was asked, after something has happened.
type slowKube struct {
	*fakeKube
	meanwhile func()
}

func (k slowKube) Cluster(context.Context) (*v1alpha1.Cluster, error) {
	c := k.get()
	k.meanwhile()
	return c, nil
}

// An answer of the API server may be older than what the watch tells while it is awaited: of the same epoch, so that
// nothing else tells which of both is of the past.
func TestAnAnswerOfThePastIsNotGoneBy(t *testing.T) {
	for what, reads := range map[string]func(m *manager) error{
		"publishing": func(m *manager) error { return m.publisher.publishPrimary(t.Context()) },
		"confirming": func(m *manager) error { return m.leases.confirmPromotion(t.Context(), 7) },
		"making a group": func(m *manager) error {
			return m.membership.bootstrapGroup(t.Context(), agent.BootstrapGroup{})
		},
	} {
		for how, newer := range map[string]*v1alpha1.Cluster{
			"changed": {ObjectMeta: metav1.ObjectMeta{UID: "u-1"},
				Status: v1alpha1.ClusterStatus{FencedInstances: []string{"db-1"}}},
			"deleted": nil,
		} {
			kube := &fakeKube{cluster: &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{UID: "u-1"}}}
			m := newManager(Options{Instance: "db-1", Log: io.Discard, Dirs: Dirs{Meta: t.TempDir()}}.withDefaults())
			m.lease = &lease{kube: kube}
			m.setCluster(kube.get())
			m.kube = slowKube{kube, func() { m.setCluster(newer) }}
			_ = reads(m)
			if v := m.facts().Cluster; len(v.Fenced) == 0 && !v.Deleting {
				t.Errorf("%s: after it was %s, it goes by what was before", what, how)
			}
		}
	}
}
