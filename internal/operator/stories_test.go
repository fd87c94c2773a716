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

// replicates is how the instances of a Cluster replicate, and with it who chooses the primary.
type replicates struct {
	name      string
	of        func(*v1alpha1.Cluster)
	instances int32
	// epoch is that in which a Cluster that was made has its first primary.
	epoch int64
	// stories are those that only such a Cluster has.
	stories []story
	// oneOf is of how many failures one is played. CALLS=all go test ./internal/operator -run TestWhichever plays all,
	// in half an hour of one core.
	oneOf int
}

var topologies = []replicates{
	{name: "asynchronous", of: func(*v1alpha1.Cluster) {}, instances: 2, epoch: 1, oneOf: 67},
	{name: "group", of: replicatesInGroup, instances: 3, epoch: 2, stories: groupStories, oneOf: 199},
}

// story is something that takes the operator several calls.
type story struct {
	name string
	// of is changed of the Cluster before it is made.
	of func(*v1alpha1.Cluster)
	// isNew: the story begins before the Cluster is made, and not when it is at rest.
	isNew bool
	// isSame: it is the same however the instances replicate, so that one topology plays it.
	isSame bool
	// acts happen one after the other, each when nothing more is to be done about the one before.
	acts []func(*stage)
	// loses are the instances whose data may be deleted.
	loses func(*stage) []string
	// end is what must be so at the end.
	end func(*stage)
}

// stories are all that takes several calls, whatever the topology is.
var stories = []story{
	{name: "a Cluster is made", isNew: true, acts: []func(*stage){nothing}, end: func(s *stage) {
		s.expectPrimary("c-1", 0)
	}},
	{name: "the primary is lost with its node", acts: []func(*stage){losesNode("c-1")}, end: func(s *stage) {
		s.expectPrimary("c-2", 1)
	}},
	{name: "another primary is wished", of: func(c *v1alpha1.Cluster) { addServices(c, forWrites) },
		acts: []func(*stage){wishes("c-2")}, end: func(s *stage) { s.expectPrimary("c-2", 1) }},
	{name: "data are recreated", acts: []func(*stage){annotates(v1alpha1.AnnotationReinit, "c-2")}, loses: only("c-2"),
		end: func(s *stage) {
			s.expectPrimary("c-1", 0)
			s.expect("the volume is another", s.uidOf("c-2") != s.before.claims["c-2"])
		}},
	{name: "an instance is removed, and its volume kept", acts: []func(*stage){scales(-1, v1alpha1.RetainVolume)},
		end: func(s *stage) {
			s.expectPrimary("c-1", 0)
			last := s.before.last()
			claim := s.claimOf(last)
			s.expect("the volume is kept", claim != nil && claim.UID == s.before.claims[last] &&
				resources.IsKept(claim) && claim.DeletionTimestamp == nil)
			s.expectOnly(last, "PersistentVolumeClaim "+last)
		}},
	{name: "an instance is removed, and its volume deleted", acts: []func(*stage){scales(-1, v1alpha1.DeleteVolume)},
		loses: theLast, end: func(s *stage) {
			s.expectPrimary("c-1", 0)
			s.expectOnly(s.before.last())
		}},
	{name: "an instance is added", acts: []func(*stage){scales(1, v1alpha1.RetainVolume)}, end: func(s *stage) {
		s.expectPrimary("c-1", 0)
		s.expect("there is one more", len(s.c.Status.InstanceNames) == len(s.before.claims)+1)
	}},
	{name: "a Cluster is deleted with its volumes", of: withVolumes(v1alpha1.DeleteVolume),
		acts: []func(*stage){isDeleted(v1alpha1.DeleteVolume)}, loses: everybody,
		end: func(s *stage) { s.expectGone() }},
	{name: "a Cluster is deleted, and its volumes are to stay after all", of: withVolumes(v1alpha1.DeleteVolume),
		acts: []func(*stage){isDeleted(v1alpha1.RetainVolume)}, end: func(s *stage) {
			s.expectGone(s.before.volumes()...)
		}},
	{name: "a Cluster is deleted with its namespace", acts: []func(*stage){losesNamespace}, end: func(s *stage) {
		s.expectGone(s.before.volumes()...)
	}},
	{name: "volumes grow", acts: []func(*stage){edits(func(c *v1alpha1.Cluster) { c.Spec.Storage.Size = "2Gi" })},
		end: func(s *stage) {
			for name := range s.before.claims {
				s.expect(name+" has grown", s.claimOf(name).Spec.Resources.Requests.Storage().String() == "2Gi")
			}
		}},
	{name: "Services are added, changed and taken away", isSame: true, acts: []func(*stage){
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
	{name: "certificates are renewed", isSame: true, acts: []func(*stage){passes(300 * 24 * time.Hour)},
		end: func(s *stage) {
			s.expectCertificates()
			s.expect("the authority is the same", bytes.Equal(s.authority().Cert, s.before.authority.Cert))
		}},
	{name: "another authority is wished", isSame: true, acts: []func(*stage){
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
		if st.loses != nil {
			s.rules.loses = st.loses(s)
		}
		s.server.arm(with)
		for _, act := range st.acts {
			act(s)
			s.group.isHurt = true // it may be
			s.untilQuiet()
		}
		st.end(s)
		outcome, writes = s.outcome(), s.server.writes
	})
	return outcome, writes
}

// begin is what the story begins with.
func (st story) begin(t *testing.T, in replicates) (from setting) {
	t.Helper()
	c := aNewCluster()
	c.Spec.Instances = in.instances
	if in.of(c); st.of != nil {
		st.of(c)
	}
	from = setting{replicates: in, objects: append(anothers(), kubernetes(c)...)}
	if st.isNew {
		return from
	}
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, from)
		s.untilQuiet()
		s.expectPrimary("c-1", 0)
		from = s.setting()
	})
	return from
}

// Whichever call fails, whether or not it was carried out, and though the operator may die after it: what must
// always be so is so after each look, and all ends as it does when none fails.
func TestWhicheverCallFailsItEndsTheSame(t *testing.T) {
	for n, in := range topologies {
		if os.Getenv("CALLS") == "all" {
			in.oneOf = 1
		}
		left := in.oneOf / 2
		t.Run(in.name, func(t *testing.T) {
			atRest := story{}.begin(t, in)
			for _, st := range slices.Concat(stories, in.stories) {
				if st.isSame && n > 0 {
					continue
				}
				t.Run(st.name, func(t *testing.T) {
					from := atRest
					if st.isNew || st.of != nil {
						from = st.begin(t, in)
					}
					st.playFaults(t, from, &left)
				})
			}
		})
	}
}

// playFaults plays a story without a failure, and with one of so many; left are those until the next.
func (st story) playFaults(t *testing.T, from setting, left *int) {
	t.Helper()
	want, writes := st.play(t, from, fault{})
	for _, with := range faults(writes) {
		if *left--; *left > 0 {
			continue
		}
		*left = from.replicates.oneOf
		t.Run(fmt.Sprintf("call %d of %d %s", with.at, len(writes), with.how), func(t *testing.T) {
			got, _ := st.play(t, from, with)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("it ends otherwise (-without the failure +with it):\n%s", diff)
			}
		})
	}
}
