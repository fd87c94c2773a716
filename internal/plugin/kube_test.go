package plugin

import "testing"

func TestFlagsAreThoseOfKubectl(t *testing.T) {
	flags := Command().PersistentFlags()
	for name, want := range map[string]bool{"kubeconfig": true, "context": true, "namespace": true, "as": true,
		"as-group": true, "token": true, "server": true, "request-timeout": true, "cluster": true,
		"user": false, "username": false, "password": false} {
		if is := flags.Lookup(name) != nil; is != want {
			t.Errorf("--%s is there: %t, want %t", name, is, want)
		}
	}
	if n := flags.Lookup("namespace"); n != nil && n.Shorthand != "n" {
		t.Errorf("-%s is the namespace, want -n", n.Shorthand)
	}
}
