package agent

import (
	"time"

	"cnmsql.co/internal/core"
)

func fresh() *Facts {
	return &Facts{Now: epochZero, Me: "db-1", PodUID: "pod-1", Node: "node-1", Locked: true, Data: core.DataEmpty,
		Mysqld: Mysqld{DownSince: epochZero},
		Cluster: &Cluster{Generation: 1, Instances: 3, FirstData: core.OriginInitialized,
			Durability: core.DurabilityAsync,
			Lease:      true, MaxStart: time.Hour, MaxStop: 30 * time.Minute}}
}

func populated() *Facts {
	f := fresh()
	f.Data = core.DataPopulated
	f.Mysqld = Mysqld{Up: true, Accepted: true, Answers: true, AnsweredAt: epochZero, StartedAt: epochZero}
	f.Cluster.Established, f.Cluster.Epoch = true, 3
	f.Server = &core.Server{SuperReadOnly: true, Executed: set("1-100")}
	return f
}
