// Package exporter names what mysqld tells of itself as mysqld_exporter does: dashboards and
// alerts that people have for that go on to work. It imports nothing of this project.
package exporter
