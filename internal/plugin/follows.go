package plugin

import (
	"fmt"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/declared"
)

// Follows is how far a primary has followed an external server.
type Follows struct {
	// Server is its name in spec.externalClusters.
	Server string `json:"server"`
	// Behind is how many transactions of the server the primary does not hold; nil while that is not known.
	Behind *uint64 `json:"behindTransactions,omitempty"`
	// Writable tells whether the server takes writes of clients.
	Writable bool `json:"serverWritable,omitempty"`
	// Problem is why it could not be asked.
	Problem string `json:"problem,omitempty"`
	// EndsNow: the Cluster is to take writes of its own.
	EndsNow bool `json:"takesOver,omitempty"`
}

func followsOf(f *Facts) *Follows {
	p := f.Cluster.Status.Promotion
	if p == nil || p.Follows == "" {
		return nil
	}
	out := &Follows{Server: p.Follows, EndsNow: takesOver(f.Cluster)}
	r := f.live(p.Instance)
	if r == nil || r.Source == nil || r.Source.Name != p.Follows {
		return out
	}
	out.Problem, out.Writable = r.Source.Problem, r.Source.Writable
	if missing, known := r.MissingOfSource(); known {
		n := missing.Count()
		out.Behind = &n
	}
	return out
}

// takesOver reports whether the Cluster follows an external server yet, and is to take writes.
func takesOver(c *v1alpha1.Cluster) bool {
	p := c.Status.Promotion
	return p != nil && p.Follows != "" && declared.Follows(&c.Spec) == ""
}

// followsText is what is told of an external server that is followed.
func followsText(f *Follows) string {
	text := f.Server
	switch {
	case f.Problem != "":
		text += "; how much is missing is not known: " + f.Problem
	case f.Behind == nil:
		text += "; how much is missing is not known yet"
	case *f.Behind == 0:
		text += "; nothing is missing"
	default:
		text += "; " + count(int(*f.Behind), "transaction") + " missing"
	}
	if f.Writable {
		text += "; it takes writes"
	}
	if f.EndsNow {
		return text + "; this Cluster takes writes as soon as nothing is missing"
	}
	return text + ". To take over: stop what writes there, and set spec.replica.enabled: false"
}

// lostOfServer tells what is lost of an external server when its follower takes over anyway; "" where it follows none.
func lostOfServer(c *v1alpha1.Cluster, r core.Report) string {
	p := c.Status.Promotion
	switch missing, known := r.MissingOfSource(); {
	case p == nil || p.Follows == "":
		return ""
	case !known:
		return fmt.Sprintf("  %s, which is followed: NOT KNOWN (it cannot be asked)", p.Follows)
	default:
		return fmt.Sprintf("  %s, which is followed: %s", p.Follows, ofThese(missing))
	}
}
