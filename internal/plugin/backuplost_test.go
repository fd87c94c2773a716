package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/remotecommand"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/layout"
)

// asked is what an API server was asked to carry out, and in which Pods.
type asked struct{ pods, commands []string }

// executor notes what is asked, and lets nobody in but to be told the flags.
func (a *asked) executor(pod string, command []string, with streams) (remotecommand.Executor, error) {
	if command[len(command)-1] != "--help" {
		a.pods, a.commands = append(a.pods, pod), append(a.commands, strings.Join(command, " "))
	}
	return podsOf("      --end-mark", func(context.Context, remotecommand.StreamOptions) error {
		return errors.New("nobody comes in")
	})(pod, command, with)
}

// serveCluster is an API server with one Cluster, that lets nobody into a Pod.
func serveCluster(t *testing.T, c *v1alpha1.Cluster) (*kube, *asked) {
	t.Helper()
	c = c.DeepCopy()
	group := v1alpha1.GroupVersion
	c.TypeMeta = metav1.TypeMeta{APIVersion: group.String(), Kind: "Cluster"}
	kinds := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: group.String(), APIResources: []metav1.APIResource{{Name: "clusters", SingularName: "cluster",
			Namespaced: true, Kind: "Cluster", Verbs: []string{"get"}}}}
	what := &asked{}
	answer := func(body any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if err := json.NewEncoder(w).Encode(body); err != nil {
				t.Error(err)
			}
		}
	}
	version := metav1.GroupVersionForDiscovery{GroupVersion: group.String(), Version: group.Version}
	groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
		Groups: []metav1.APIGroup{{Name: group.Group, PreferredVersion: version,
			Versions: []metav1.GroupVersionForDiscovery{version}}}}
	mux := http.NewServeMux()
	mux.Handle("GET /api", answer(metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}}))
	mux.Handle("GET /apis", answer(groups))
	mux.Handle("GET /apis/"+group.String(), answer(kinds))
	mux.Handle("GET /apis/"+group.String()+"/namespaces/shop/clusters/"+c.Name, answer(c))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	k := &kube{rules: &clientcmd.ClientConfigLoadingRules{}, executor: what.executor}
	k.overrides.ClusterInfo.Server, k.overrides.Context.Namespace = server.URL, "shop"
	return k, what
}

// runsLost runs the command with arguments.
func runsLost(k *kube, args ...string) (out string, err error) {
	var text bytes.Buffer
	cmd := backupLostCommand(k)
	cmd.SetArgs(args)
	cmd.SetOut(&text)
	cmd.SetErr(&text)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(context.Background())
	return text.String(), err
}

func TestWhatIsLostIsReadInAPod(t *testing.T) {
	for args, want := range map[string][2]string{
		"demo":                        {"demo-1", layout.Binary + " instance lost --end-mark"},
		"demo --epoch 3":              {"demo-1", layout.Binary + " instance lost --end-mark --epoch 3"},
		"demo --epoch 3 --instance 2": {"demo-2", layout.Binary + " instance lost --end-mark --epoch 3"},
	} {
		t.Run(args, func(t *testing.T) {
			k, asked := serveCluster(t, archived())
			_, err := runsLost(k, strings.Fields(args)...)
			mustFail(t, err, want[0])
			if len(asked.pods) == 0 || asked.pods[0] != want[0] || asked.commands[0] != want[1] {
				t.Errorf("asked is %+v", asked)
			}
		})
	}
}

func TestAClusterThatArchivesNothingIsAskedForNoLoss(t *testing.T) {
	k, asked := serveCluster(t, stored())
	out, err := runsLost(k, "demo")
	mustFail(t, err, "cluster demo archives no binary logs: set spec.backup.continuousArchiving.enabled")
	if out != "" || len(asked.pods) > 0 {
		t.Errorf("it says %q, and asked is %+v", out, asked)
	}
	_, err = runsLost(k, "another")
	mustFail(t, err, "there is no Cluster another in namespace shop")
}
