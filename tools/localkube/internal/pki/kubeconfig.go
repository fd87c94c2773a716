package pki

import (
	"encoding/json"
	"fmt"
	"os"
)

// WriteKubeconfig writes a kubeconfig of the key pair called name, with
// certificates inside, so that it can be copied anywhere. JSON is YAML.
func (a *Authority) WriteKubeconfig(path, cluster, server, name string) error {
	files := map[string][]byte{}
	for _, f := range []string{a.CertFile("ca"), a.CertFile(name), a.KeyFile(name)} {
		data, err := os.ReadFile(f)
		if err != nil {
			return fmt.Errorf("writing %s: %w", path, err)
		}
		files[f] = data
	}
	context := "localkube-" + cluster
	config := map[string]any{
		"apiVersion":      "v1",
		"kind":            "Config",
		"current-context": context,
		"clusters": named(context, "cluster", map[string]any{
			"server": server, "certificate-authority-data": files[a.CertFile("ca")]}),
		"users": named(context, "user", map[string]any{
			"client-certificate-data": files[a.CertFile(name)], "client-key-data": files[a.KeyFile(name)]}),
		"contexts": named(context, "context", map[string]any{"cluster": context, "user": context}),
	}
	data, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o600)
}

func named(name, kind string, value any) []any {
	return []any{map[string]any{"name": name, kind: value}}
}
