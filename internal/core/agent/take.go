package agent

import (
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// TakeServer takes what mysqld said last, nil if nothing. It counts while mysqld answers, so Mysqld and
// Cluster have to be there by then. peer tells at which host an instance is reached; receiveTry is when
// receiving was last begun.
func (f *Facts) TakeServer(s *core.Server, peer func(instance string) string, receiveTry time.Time) {
	if s == nil || !f.Mysqld.Answers {
		return
	}
	f.Server = s
	r := s.Replication
	if r == nil {
		return
	}
	f.Replicating = r.SourceHost
	if promoted := f.Promoted(); promoted != "" && peer(promoted) == r.SourceHost {
		f.Replicating = promoted
	}
	if !r.IORunning && r.IOError != "" {
		f.ReceiveFailedAt = receiveTry
	}
}

// TakeTail takes what the volume tells of commits that waited for acknowledgements, while that matters.
func (f *Facts) TakeTail(recorded func() (epoch int64, base gtid.Set)) {
	if f.Mysqld.MayHaveTail() {
		f.TailEpoch, f.TailBase = recorded()
	}
}
