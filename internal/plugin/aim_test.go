package plugin

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"cnmsql.co/api/v1alpha1"
)

// kubeconfig is a file with the context staging, at the API server of a kube.
func kubeconfig(t *testing.T, k *kube) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	text := `{"apiVersion": "v1", "kind": "Config", "current-context": "prod",
		"clusters": [{"name": "s", "cluster": {"server": "` + k.overrides.ClusterInfo.Server + `"}},
			{"name": "p", "cluster": {"server": "http://127.0.0.1:1"}}],
		"contexts": [{"name": "staging", "context": {"cluster": "s", "user": "jo", "namespace": "shop"}},
			{"name": "prod", "context": {"cluster": "p", "user": "jo"}}],
		"users": [{"name": "jo", "user": {}}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// aims are what a text says to type, up to where the flags have to be.
var aims = regexp.MustCompile(`kubectl (?:cnmsql )?[a-z-]+`)

func mustAim(t *testing.T, what, text, flags string) {
	t.Helper()
	all := aims.FindAllString(text, -1)
	for _, command := range all {
		if !strings.HasSuffix(command, flags) {
			t.Errorf("%s: %q acts on another Kubernetes, in: %s", what, command, text)
		}
	}
	if len(all) == 0 {
		t.Errorf("%s: no command is told: %s", what, text)
	}
}

func TestWhatIsToldToBeTypedActsOnTheSameKubernetes(t *testing.T) {
	k, _ := serveCluster(t, archived())
	config := kubeconfig(t, k)
	for _, line := range []string{
		"fence up demo 1", "group up demo", "whatif demo", "failover demo", "failover demo --to 2", "status another",
		"group status demo", "group recover demo", "reinit demo 1",
		"failover demo --to 2 --accept-data-loss", "dump demo -- shop", "mysql demo", "status demo",
	} {
		var out bytes.Buffer
		cmd := Command()
		cmd.SetArgs(append([]string{"--context", "staging", "--kubeconfig", config}, strings.Fields(line)...))
		cmd.SetIn(strings.NewReader(""))
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			out.WriteString(err.Error())
		}
		text := strings.ReplaceAll(out.String(), "--kubeconfig "+config+" --context staging", "--aimed")
		mustAim(t, line, text, "--aimed")
	}
}

func TestAQuestionSaysOfWhichKubernetesItIs(t *testing.T) {
	k, _ := serveCluster(t, archived())
	var out bytes.Buffer
	cmd := Command()
	cmd.SetArgs([]string{"reinit", "demo", "2", "--context", "staging", "--kubeconfig", kubeconfig(t, k)})
	cmd.SetIn(strings.NewReader(""))
	cmd.SetOut(&out)
	mustFail(t, cmd.ExecuteContext(t.Context()), "nobody answered, and nothing was done")
	want := "This is in context staging (" + k.overrides.ClusterInfo.Server + ").\nGo on? Type yes:"
	if !strings.Contains(out.String(), want) {
		t.Errorf("it asks %q", out.String())
	}
}

// A status is printed and encoded; both have the flags, once.
func TestAdviceActsOnTheSameKubernetes(t *testing.T) {
	a := aim{flags: "--context staging"}
	for name, situation := range situations {
		r := Build(*situation())
		a.report(&r)
		var out bytes.Buffer
		if err := WriteTable(a.printer(&out), r); err != nil {
			t.Fatal(err)
		}
		mustAim(t, name, strings.Join(append(r.ToDo, r.Connect.Commands...), "\n"), "--context")
		mustAim(t, name, strings.ReplaceAll(out.String(), a.flags, "--aimed"), "--aimed")
	}
}

func TestFlagsAreToldAsAShellTakesThem(t *testing.T) {
	for _, c := range []struct{ given, want string }{
		{"", ""},
		{"--namespace=shop;--request-timeout=5s", ""},
		{"--context=a b", "--context 'a b'"},
		{"--context=it's", `--context 'it'\''s'`},
		{"--as=jo;--as-group=a;--as-group=b;--insecure-skip-tls-verify", "--insecure-skip-tls-verify=true --as jo " +
			"--as-group a --as-group b"},
		{"--server=https://10.0.0.1:6443;--token=secret", "--server https://10.0.0.1:6443 --token TOKEN"},
	} {
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		newKube(flags)
		if err := flags.Parse(strings.Split(c.given, ";")); err != nil {
			t.Fatal(err)
		}
		if got := aimOf(flags).flags; got != c.want {
			t.Errorf("%s: %q, want %q", c.given, got, c.want)
		}
	}
}

func TestOnlyCommandsGetFlags(t *testing.T) {
	a := aim{flags: "--context s"}
	for text, want := range map[string]string{
		"kubectl delete pod demo-1 -n shop (its data": "kubectl --context s delete pod demo-1 -n shop (its data",
		"kubectl cnmsql status demo":                  "kubectl cnmsql --context s status demo",
		"kubectl port-forward -n shop":                "kubectl --context s port-forward -n shop",
		"kubectl cnmsql, the plugin":                  "kubectl cnmsql, the plugin",
		v1alpha1.GroupVersion.Group:                   v1alpha1.GroupVersion.Group,
	} {
		if got := a.in(text); got != want || a.in(got) != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestACommandOfTheOperatorsNamesTheNamespace(t *testing.T) {
	for text, want := range map[string]string{
		"nothing to do": "nothing to do",
		"kubectl cnmsql failover demo --to INSTANCE": "kubectl cnmsql failover -n shop demo --to INSTANCE",
		"kubectl cnmsql group recover demo":          "kubectl cnmsql group recover -n shop demo",
		"see: kubectl logs demo-1 -c mysql":          "see: kubectl logs -n shop demo-1 -c mysql",
		"kubectl taint node n1 a=b:NoExecute":        "kubectl taint node n1 a=b:NoExecute",
		"kubectl logs demo-1 -n shop":                "kubectl logs demo-1 -n shop",
	} {
		if got := inNamespace("shop", text); got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
	aimed := aim{flags: "--context b"}.in(inNamespace("shop", "kubectl cnmsql failover demo"))
	if want := "kubectl cnmsql --context b failover -n shop demo"; aimed != want {
		t.Errorf("it became %q", aimed)
	}
}
