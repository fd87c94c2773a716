package exporter

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// family is what has a common beginning in SHOW GLOBAL STATUS, and is one metric with a label.
type family struct {
	prefix, name, label, help string
	kind                      prometheus.ValueType
}

var families = []family{
	{"com_", "commands_total", "command", "Statements that were run, by kind.", prometheus.CounterValue},
	{"handler_", "handlers_total", "handler", "Requests to the storage engines.", prometheus.CounterValue},
	{"connection_errors_", "connection_errors_total", "error", "Connections that failed.", prometheus.CounterValue},
	{"innodb_rows_", "innodb_row_ops_total", "operation", "Rows that InnoDB read or changed.", prometheus.CounterValue},
	{"performance_schema_", "performance_schema_lost_total", "instrumentation",
		"What the Performance Schema had no room for.", prometheus.CounterValue},
}

const pages = "innodb_buffer_pool_pages_"

// Status makes the metrics of SHOW GLOBAL STATUS, and gives each to put. What has no number is
// left out.
func Status(status map[string]string, put func(prometheus.Metric)) {
	for name, text := range status {
		value, ok := number(text)
		if !ok {
			continue
		}
		name = clean(name)
		if state, is := strings.CutPrefix(name, pages); is {
			putPages(state, value, put)
			continue
		}
		putStatus(name, value, put)
	}
}

func putStatus(name string, value float64, put func(prometheus.Metric)) {
	for _, f := range families {
		if of, is := strings.CutPrefix(name, f.prefix); is {
			put(metric(status+f.name, f.help, f.kind, value, f.label, of))
			return
		}
	}
	put(metric(status+name, "SHOW GLOBAL STATUS.", prometheus.UntypedValue, value))
}

// putPages exports one status counter of the buffer pool's pages. Some counters tell pages by
// their state, and others by what was done to them, so that these become different metrics. The
// total is left out, because it is a sum of others.
func putPages(state string, value float64, put func(prometheus.Metric)) {
	switch state {
	case "total":
	case "dirty":
		put(metric(status+"buffer_pool_dirty_pages", "Pages of the buffer pool that are not written yet.",
			prometheus.GaugeValue, value))
	case "data", "free", "misc", "old":
		put(metric(status+"buffer_pool_pages", "Pages of the buffer pool, by state.", prometheus.GaugeValue, value,
			"state", state))
	default:
		put(metric(status+"buffer_pool_page_changes_total", "What was done to pages of the buffer pool.",
			prometheus.CounterValue, value, "operation", state))
	}
}

// Variables makes the metrics of SHOW GLOBAL VARIABLES. What has no number is left out.
func Variables(variables map[string]string, put func(prometheus.Metric)) {
	for name, text := range variables {
		if value, ok := number(text); ok {
			put(metric("mysql_global_variables_"+clean(name), "SHOW GLOBAL VARIABLES.", prometheus.GaugeValue, value))
		}
	}
	put(metric("mysql_version_info", "The server's version, in labels.", prometheus.GaugeValue, 1,
		"version", variables["version"], "innodb_version", variables["innodb_version"],
		"version_comment", variables["version_comment"]))
}

const status = "mysql_global_status_"

// metric is one value; labels are pairs of a name and a value.
func metric(name, help string, kind prometheus.ValueType, value float64, labels ...string) prometheus.Metric {
	fixed := prometheus.Labels{}
	for i := 0; i < len(labels); i += 2 {
		fixed[labels[i]] = labels[i+1]
	}
	return prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, fixed), kind, value)
}

var unusual = regexp.MustCompile(`[^a-z0-9_]`)

func clean(name string) string { return unusual.ReplaceAllString(strings.ToLower(name), "_") }

// number reads a value as a number: switches are 1 and 0, moments the seconds since 1970.
func number(text string) (float64, bool) {
	switch strings.ToUpper(text) {
	case "ON", "YES":
		return 1, true
	case "OFF", "NO", "DISABLED":
		return 0, true
	}
	for _, moment := range []string{"Jan _2 15:04:05 2006 MST", time.DateTime} {
		if at, err := time.Parse(moment, text); err == nil {
			return float64(at.Unix()), true
		}
	}
	value, err := strconv.ParseFloat(text, 64)
	return value, err == nil
}
