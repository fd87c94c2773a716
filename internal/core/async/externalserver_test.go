package async

import (
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// server is an external server: what it has executed, and whether it is reached, and written to.
type server struct {
	executed  gtid.Set
	away      bool
	writable  bool
	unapplied string // why what it sends cannot be applied; "" when it can
	address   string // where instances are told that it is reached
}

// followServer: a primary that follows an external server has what that has executed, and asks it.
func (w *world) followServer(in *inst) {
	r := &in.truth
	if r.Source = nil; r.Follows == "" {
		return
	}
	r.Source, r.Reason, r.Message = &core.Source{Name: r.Follows, Generation: w.cluster.Generation,
		Address: w.server.address}, "", ""
	r.Server.Replication = &core.Replication{SourceHost: "mysql.example.com", IORunning: true, SQLRunning: true}
	switch s := w.server; {
	case s.away:
		r.Source.Generation, r.Source.Problem = 0, "connection refused"
		r.Server.Replication.IORunning, r.Server.Replication.IOConnecting = false, true
		r.Reason, r.Message = core.InstanceSourceUnreached, "does not receive from "+r.Follows+": connection refused"
	case s.unapplied != "":
		r.Server.Replication.SQLRunning, r.Server.Replication.SQLError = false, s.unapplied
		r.Reason, r.Message = core.InstanceSourceRefused, "cannot apply what "+r.Follows+" sends: "+s.unapplied
	case !w.slow[in.name]:
		r.Server.Executed = r.Server.Executed.Union(s.executed)
	}
	r.Source.Executed, r.Source.Writable = w.server.executed, w.server.writable
	r.Source.HeldBy(r.Server)
}

// server says what the external server is like.
func (s *script) server(a args) {
	if s.w.server == nil {
		s.w.server = &server{}
	}
	for _, key := range append([]string{a.name}, a.keys...) {
		switch v := a.vals[key]; key {
		case "executed":
			s.w.server.executed = parseSet(v)
		case "unapplied":
			s.w.server.unapplied = v
		case "address":
			s.w.server.address = v
		case "writable":
			s.w.server.writable = v != "no"
		case "away", "back":
			s.w.server.away = key == "away"
		case "":
		default:
			s.t.Fatalf("unknown of the server: %q", key)
		}
	}
	s.w.hearAll()
}
