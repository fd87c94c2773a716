package exporter

import "github.com/prometheus/client_golang/prometheus"

// Channel is what a replica tells of its source.
type Channel struct {
	Host, UUID        string
	Receives, Applies bool
	// Lag is how far it is behind, in seconds, where that is known.
	Lag      float64
	LagKnown bool
}

// Replica makes the metrics of SHOW REPLICA STATUS by which people are alerted.
func Replica(c Channel, put func(prometheus.Metric)) {
	of := func(name, help string, value float64) {
		put(metric("mysql_slave_status_"+name, help, prometheus.UntypedValue, value, "channel_name", "",
			"connection_name", "", "master_host", c.Host, "master_uuid", c.UUID))
	}
	of("slave_io_running", "Whether this replica receives.", one(c.Receives))
	of("slave_sql_running", "Whether this replica applies.", one(c.Applies))
	if c.LagKnown {
		of("seconds_behind_master", "How far this replica is behind its source, in seconds.", c.Lag)
	}
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
