package core

import "cnmsql.co/internal/gtid"

// Source is what a primary knows of the external server that it follows, one of spec.externalClusters.
type Source struct {
	Name string `json:"name"`
	// Address is where it was asked.
	Address string `json:"address,omitempty"`
	// Generation of the Cluster's spec by which the server was asked last what it has executed; 0 while it never
	// was. Executed is what it had executed then.
	Generation int64    `json:"generation,omitempty"`
	Executed   gtid.Set `json:"executed,omitzero"`
	// Lacks tells whether the primary does not hold all of that.
	Lacks bool `json:"lacks,omitempty"`
	// Writable tells whether the server took writes of clients then.
	Writable bool `json:"writable,omitempty"`
	// Problem is why the server could not be asked the last time; "" when it could.
	Problem string `json:"problem,omitempty"`
}

// HeldBy notes whether a server holds what this one has executed.
func (s *Source) HeldBy(server *Server) {
	s.Lacks = server == nil || !server.Holds().Contains(s.Executed)
}

// lasting is what of it is worth a word at once: not what is executed.
func (s *Source) lasting() *Source {
	if s == nil {
		return nil
	}
	out := *s
	out.Executed = gtid.Set{}
	return &out
}

// MissingOfSource is what the external server that this primary follows has executed, and the primary does not hold;
// known is false where the server was not asked, or cannot be.
func (r *Report) MissingOfSource() (missing gtid.Set, known bool) {
	if r.Source == nil || r.Source.Problem != "" || r.Source.Generation == 0 || r.Server == nil {
		return gtid.Set{}, false
	}
	return r.Source.Executed.Subtract(r.Server.Holds()), true
}

// TakesWrites reports whether the instance said that clients may write to it.
func (r *Report) TakesWrites() bool { return r.WritableEpoch != 0 && r.Follows == "" }

// IsPrimary reports whether the instance said that it is the primary, whether or not clients may write to it.
func (r *Report) IsPrimary() bool { return r.WritableEpoch != 0 }

// IsPrimaryIn reports whether an instance says that it is the primary in an epoch.
func (r *Report) IsPrimaryIn(epoch int64) bool { return r.WritableEpoch == epoch }

// HasSeenAfter reports whether the instance remembers that the Cluster's status had a later epoch than one: who reads
// that one now reads the past.
func (r *Report) HasSeenAfter(epoch int64) bool { return r.ViewEpoch > epoch }
