package async

import "cnmsql.co/internal/core"

// tellStrangers names who acknowledges commits of the primary without being an instance: nobody elects it.
func (d *decision) tellStrangers() {
	holder := d.holder()
	if holder == nil {
		return
	}
	r, serves := serving(holder)
	if !serves || r.Server.SemiSync.Strangers == "" {
		return
	}
	names := r.Server.SemiSync.Strangers
	d.Remark(core.ReasonForeignAcks, names, names+" received from "+r.Instance+" with semi-synchronous replication "+
		"switched on, but is no instance of this Cluster: no election counts what it acknowledged. The manager of "+
		"the primary ends its connection each time. Set rpl_semi_sync_replica_enabled to OFF there, and restart its "+
		"IO thread")
}
