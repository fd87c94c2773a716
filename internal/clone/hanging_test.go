package clone

import (
	"context"
	"errors"
	"testing"
	"time"
)

// commitsHang: a donor under quorum whose commits wait for a replica, and none comes. It
// cannot end its copy of pages, says nothing more, and is given up by name. Once the commit
// is through, it can be copied.
func commitsHang(t *testing.T, donor *server) {
	donor.Exec("INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'")
	donor.Exec("SET GLOBAL rpl_semi_sync_source_timeout=4294967295")
	donor.Exec("SET GLOBAL rpl_semi_sync_source_enabled=1")
	committed := make(chan error, 1)
	go func() {
		_, err := donor.DB.ExecContext(context.WithoutCancel(t.Context()), "CREATE DATABASE hanging")
		committed <- err
	}()
	const waiting = "SELECT VARIABLE_VALUE FROM performance_schema.global_status " +
		"WHERE VARIABLE_NAME='Rpl_semi_sync_source_wait_sessions'"
	for end := time.Now().Add(patience); donor.Text(waiting) == "0"; <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no commit waits for a replica")
		}
	}
	d := donor.donor()
	d.Silence = 15 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := Snapshot(ctx, d, new(counter)); !errors.Is(err, DonorSilent) {
		t.Errorf("%v", err)
	}
	donor.Exec("SET GLOBAL rpl_semi_sync_source_enabled=0")
	must(t, <-committed)
	must(t, Snapshot(t.Context(), d, new(counter)))
}
