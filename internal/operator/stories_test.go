package operator

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/resources"
)

// oneOf is of how many failures one is played. CALLS=all go test ./internal/operator -run TestWhichever plays all, in
// a quarter of an hour.
const oneOf = 67

// story is something that takes the operator several calls.
type story struct {
	name string
	// of is changed of the Cluster before it is made.
	of func(*v1alpha1.Cluster)
	// isNew: the story begins before the Cluster is made, and not when it is at rest.
	isNew bool
	// acts happen one after the other, each when nothing more is to be done about the one before.
	acts []func(*stage)
	// end is what must be so at the end.
	end func(*stage)
}

// stories are all that takes several calls. None has a group, which decides for itself.
var stories = []story{
	{name: "a Cluster is made", isNew: true, acts: []func(*stage){nothing}, end: func(s *stage) {
		s.expectPrimary("c-1", 1)
	}},
	{name: "the primary is lost with its node", acts: []func(*stage){losesNode("c-1")}, end: func(s *stage) {
		s.expectPrimary("c-2", 2)
	}},
	{name: "another primary is wished", of: func(c *v1alpha1.Cluster) { addServices(c, forWrites) },
		acts: []func(*stage){func(s *stage) {
			s.wish(func(status *v1alpha1.ClusterStatus) { status.TargetPrimary = "c-2" })
		}}, end: func(s *stage) { s.expectPrimary("c-2", 2) }},
	{name: "data are recreated", acts: []func(*stage){annotates(v1alpha1.AnnotationReinit, "c-2")},
		end: func(s *stage) {
			s.expectPrimary("c-1", 1)
			s.expect("the volume is another", s.uidOf("c-2") != s.before.claims["c-2"])
		}},
	{name: "an instance is removed, and its volume kept", acts: []func(*stage){scales(1, v1alpha1.RetainVolume)},
		end: func(s *stage) {
			s.expectPrimary("c-1", 1)
			claim := s.claimOf("c-2")
			s.expect("the volume is kept", claim != nil && claim.UID == s.before.claims["c-2"] &&
				resources.IsKept(claim) && claim.DeletionTimestamp == nil)
			s.expectOnly("c-2", "PersistentVolumeClaim c-2")
		}},
	{name: "an instance is removed, and its volume deleted", acts: []func(*stage){scales(1, v1alpha1.DeleteVolume)},
		end: func(s *stage) {
			s.expectPrimary("c-1", 1)
			s.expectOnly("c-2")
		}},
	{name: "an instance is added", acts: []func(*stage){scales(3, v1alpha1.RetainVolume)}, end: func(s *stage) {
		s.expectPrimary("c-1", 1)
		s.expect("there are three", slices.Equal(s.c.Status.InstanceNames, []string{"c-1", "c-2", "c-3"}))
	}},
	{name: "a Cluster is deleted with its volumes", of: withVolumes(v1alpha1.DeleteVolume),
		acts: []func(*stage){isDeleted(v1alpha1.DeleteVolume)}, end: func(s *stage) { s.expectGone() }},
	{name: "a Cluster is deleted, and its volumes are to stay after all", of: withVolumes(v1alpha1.DeleteVolume),
		acts: []func(*stage){isDeleted(v1alpha1.RetainVolume)}, end: func(s *stage) {
			s.expectGone("PersistentVolumeClaim c-1", "PersistentVolumeClaim c-2")
		}},
	{name: "a Cluster is deleted with its namespace", acts: []func(*stage){losesNamespace}, end: func(s *stage) {
		s.expectGone("PersistentVolumeClaim c-1", "PersistentVolumeClaim c-2")
	}},
	{name: "volumes grow", acts: []func(*stage){edits(func(c *v1alpha1.Cluster) { c.Spec.Storage.Size = "2Gi" })},
		end: func(s *stage) {
			for _, name := range []string{"c-1", "c-2"} {
				s.expect(name+" has grown", s.claimOf(name).Spec.Resources.Requests.Storage().String() == "2Gi")
			}
		}},
	{name: "Services are added, changed and taken away", acts: []func(*stage){
		edits(func(c *v1alpha1.Cluster) { addServices(c, forWrites, forReads) }),
		edits(func(c *v1alpha1.Cluster) {
			addServices(c, sticky(forWrites), forReads)
			c.Spec.Managed.Services.Template = sticky(forReads).ServiceTemplate
		}),
		edits(func(c *v1alpha1.Cluster) {
			addServices(c, forReads)
			c.Spec.Managed.Services.DisabledDefaultServices = []v1alpha1.ServiceSelector{v1alpha1.SelectRead}
		}),
	}, end: func(s *stage) {
		s.expect("those that are wanted are there", slices.Equal(slices.Sorted(maps.Keys(led(s.T, s.server.raw))),
			[]string{"c-1", "c-1-rw", "c-2", "c-old", "c-reports", "c-ro", "c-rw"}))
	}},
	{name: "certificates are renewed", acts: []func(*stage){passes(300 * 24 * time.Hour)}, end: func(s *stage) {
		s.expectCertificates()
		s.expect("the authority is the same", bytes.Equal(s.authority().Cert, s.before.authority.Cert))
	}},
	{name: "another authority is wished", acts: []func(*stage){
		annotates(v1alpha1.AnnotationNewAuthority, "now"), passes(2 * brought), passes(2 * brought),
		passes(2 * brought), // what could not be read is read the next time
	}, end: func(s *stage) {
		s.expectCertificates()
		s.expect("the authority is another", !bytes.Equal(s.authority().Cert, s.before.authority.Cert))
		s.expect("the former one is forgotten", !s.authority().Changes())
	}},
}

// faults are all failures of a story's calls. Whether a call that changes nothing was carried out is all the same.
func faults(writes []bool) (out []fault) {
	for i, isWrite := range writes {
		out = append(out, fault{i + 1, callLost})
		if isWrite {
			out = append(out, fault{i + 1, callUnanswered}, fault{i + 1, callLast})
		}
	}
	return out
}

// play plays a story in which one call fails, and tells how it ended, and which calls there were.
func (st story) play(t *testing.T, from setting, with fault) (outcome []string, writes []bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if !st.isNew {
			time.Sleep(time.Hour) // all that is there is older than now
		}
		s := newStage(t, from)
		if !st.isNew {
			s.untilQuiet()
		}
		s.before = s.now()
		s.server.arm(with)
		for _, act := range st.acts {
			act(s)
			s.untilQuiet()
		}
		st.end(s)
		outcome, writes = s.outcome(), s.server.writes
	})
	return outcome, writes
}

// begin is what the story begins with.
func (st story) begin(t *testing.T) (from setting) {
	t.Helper()
	c := aNewCluster()
	if st.of != nil {
		st.of(c)
	}
	from = setting{objects: append(anothers(), kubernetes(c)...)}
	if st.isNew {
		return from
	}
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, from)
		s.untilQuiet()
		s.expectPrimary("c-1", 1)
		from = s.setting()
	})
	return from
}

// Whichever call fails, whether or not it was carried out, and though the operator may die after it: what must
// always be so is so after each look, and all ends as it does when none fails.
func TestWhicheverCallFailsItEndsTheSame(t *testing.T) {
	every := oneOf
	if os.Getenv("CALLS") == "all" {
		every = 1
	}
	left, atRest := every/2, story{}.begin(t)
	for _, st := range stories {
		t.Run(st.name, func(t *testing.T) {
			from := atRest
			if st.isNew || st.of != nil {
				from = st.begin(t)
			}
			want, writes := st.play(t, from, fault{})
			for _, with := range faults(writes) {
				if left--; left > 0 {
					continue
				}
				left = every
				t.Run(fmt.Sprintf("call %d of %d %s", with.at, len(writes), with.how), func(t *testing.T) {
					got, _ := st.play(t, from, with)
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("it ends otherwise (-without the failure +with it):\n%s", diff)
					}
				})
			}
		})
	}
}
