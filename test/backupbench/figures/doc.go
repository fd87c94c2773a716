// Package figures is what was measured of backups, as docs/benchmarks.json keeps it and as
// the section "Backups" of docs/benchmarks.md tells it. test/backupbench measures it, and
// test/bench writes the section again. It must not know how it was measured.
package figures
