package plugin

import (
	"cmp"
	"fmt"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/declared"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/whatif"
)

// topology is how clusters of the topologies differ for their reader.
type topology interface {
	// writable tells whether clients can write: by the instances' own word, by the
	// operator's diagnosis when they were not asked.
	writable(f *Facts) (Writable, string)
	// place adds an instance's own word of its place in the cluster.
	place(in *Instance, f *Facts, r *core.Report)
	// unproven are transactions by which a replica may be ahead of a primary that was
	// asked later, though nothing is wrong.
	unproven(c *v1alpha1.Cluster, primary *core.Server) gtid.Set
	// takesPart reports whether a server gets now what the primary commits.
	takesPart(c *v1alpha1.Cluster, s *core.Server) bool
	fencing() fenceWords
	// adviseBlocked tells what to do about what only this topology can be blocked by.
	adviseBlocked(f *Facts, r *Report) []string
	// promise adds what a commit has reached when the client hears of it.
	promise(p page, r Report)
	// columns are those of the table of instances: all that the topology has.
	columns() []string
	// reference is the instance that the positions of others are held against.
	reference(r Report) string
	// outcome puts in words what a loss of instances leads to, and opening what a new
	// primary does in the end.
	outcome(a whatif.Answer) string
	opening() string
	// overridable refuses an override that the topology has no use for.
	overridable(c *v1alpha1.Cluster, to string) error
}

// fenceWords tell what fencing an instance does.
type fenceWords struct {
	// pending and primary tell of an instance that is to be fenced, and of the cluster
	// when that is the primary; question is asked back then, "" for no question.
	pending, primary, question string
	// standing follows the name of a fenced primary.
	standing string
	// on and off tell what has begun.
	on, off string
	// refusal is why the operator may refuse it; "" where it never does.
	refusal core.Reason
}

// topologies are their implementations here: topologyasync.go and topologygroup.go.
var topologies = map[core.Topology]topology{core.TopologyAsync: async{}, core.TopologyGroup: group{}}

func topologyOf(c *v1alpha1.Cluster) topology { return topologies[declared.Topology(&c.Spec)] }

// allOf are all transactions of a source; none when its name is no UUID.
func allOf(uuid string) gtid.Set {
	all, err := gtid.Parse(uuid + ":1-9223372036854775806")
	if err != nil {
		return gtid.Set{}
	}
	return all
}

// fullText follows the name of a primary that LacksSpace.
const fullText = " accepts writes, but each commit waits for space on its volume"

// hangsText follows the name of a primary that hangs.
const hangsText = "'s mysqld runs and does not answer: whether it takes writes is not known"

// hangs reports whether an instance's mysqld runs and tells nothing.
func hangs(r *core.Report) bool { return r != nil && r.State == core.Hung }

// routed returns whether clients reach the instance that accepts writes: they do if the Service
// leads there. A Service that is not there, or could not be read, is not held against it. because
// is why that instance accepts writes.
func (f *Facts) routed(writer, because string) (Writable, string) {
	if to := f.routedTo(); to != writer && f.ReadWrite != nil {
		return WritableNo, fmt.Sprintf("%s, but the Service %s does not lead to it yet (it leads to %s)", because,
			f.ReadWrite.Name, cmp.Or(to, "nobody"))
	}
	return WritableYes, because
}
