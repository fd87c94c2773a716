package instance

import (
	"os"
	"strings"
	"testing"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// TestAnInstanceGoesOnWithTheParametersOfBefore holds that a parameter which mysqld refuses keeps no instance away that
// has served without it: not when its mysqld ends for another reason.
func TestAnInstanceGoesOnWithTheParametersOfBefore(t *testing.T) {
	w := newWorld(t, func(c *v1alpha1.Cluster) {
		c.Spec.MySQL.Parameters = map[string]string{"max-connections": "77"}
	})
	one := w.start(1)
	w.grant("db-1", core.ProofBootstrap, "", "", 0)
	w.awaitPrimary(one, 1)
	w.await(one, "what it serves with is kept", func(core.Report) bool {
		_, err := os.Stat(one.opt.Dirs.acceptedFile())
		return err == nil
	})
	w.kube.edit(func(c *v1alpha1.Cluster) {
		c.Generation++
		c.Spec.MySQL.Parameters = map[string]string{"max-connections": "88", "max-conections": "99"}
	})
	w.await(one, "the spec is seen", func(r core.Report) bool { return r.Generation == w.kube.get().Generation })
	_ = one.proc().handle.Kill()
	r := w.await(one, "it serves again", func(r core.Report) bool { return r.WritableEpoch == 1 && r.Restarts > 0 })
	if !strings.Contains(r.ConfigRefused, "max_conections") {
		t.Errorf("what mysqld refuses is told so: %q", r.ConfigRefused)
	}
	_ = w.app(one).Ping() // its connections are of before
	var limit int
	must(t, w.app(one).QueryRow("SELECT @@max_connections").Scan(&limit))
	if limit != 77 {
		t.Errorf("it runs with %d connections, and not with the 77 of before", limit)
	}
	w.kube.edit(func(c *v1alpha1.Cluster) {
		c.Generation++
		c.Spec.MySQL.Parameters = map[string]string{"max-connections": "88"}
	})
	w.await(one, "it refuses nothing of the corrected spec", func(r core.Report) bool { return r.ConfigRefused == "" })
}
