package plugin

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordination "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/apiconn"
)

// kube reaches the API server as kubectl would: by the same files, variables and flags. kubectl's
// --user is not among them; it means an account of MySQL here. Nor are --username and --password,
// which kubectl has no more.
type kube struct {
	rules     *clientcmd.ClientConfigLoadingRules
	overrides clientcmd.ConfigOverrides
	// flags of the command line; nil in tests.
	flags *pflag.FlagSet
	// executor is a test's; nil for Pods of the API server.
	executor executors
}

func newKube(flags *pflag.FlagSet) *kube {
	k := &kube{rules: clientcmd.NewDefaultClientConfigLoadingRules(), flags: flags}
	flags.StringVar(&k.rules.ExplicitPath, "kubeconfig", "", "path of the kubeconfig file")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ContextOverrideFlags.AuthInfoName.LongName = "" // what has no name is no flag
	names.AuthOverrideFlags.Username.LongName, names.AuthOverrideFlags.Password.LongName = "", ""
	clientcmd.BindOverrideFlags(&k.overrides, flags, names)
	return k
}

// session is a reached API server.
type session struct {
	conf      *rest.Config
	client    client.WithWatch
	namespace string
	executor  executors
	aim       aim
}

func (k *kube) open() (*session, error) {
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(k.rules, &k.overrides)
	conf, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w; name one with --kubeconfig or the variable KUBECONFIG", err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, fmt.Errorf("reading the namespace of the kubeconfig: %w", err)
	}
	// A status asks for a dozen objects at once; throttling would eat the
	// deadline of the live facts.
	conf.QPS, conf.Burst = 50, 100
	conf.UserAgent = "kubectl-cnmsql"
	// A missing CRD and the like are told by errors; warnings of the API server
	// are for whoever writes manifests.
	conf.WarningHandler = rest.NoWarnings{}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(conf, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reaching the API server %s: %w", conf.Host, err)
	}
	out := &session{conf: conf, client: apiconn.WholeGets(c), namespace: namespace, executor: k.executor,
		aim: aimOf(k.flags)}
	out.aim.where = "at " + conf.Host
	if raw, err := loader.RawConfig(); err == nil {
		if name := cmp.Or(k.overrides.CurrentContext, raw.CurrentContext); name != "" {
			out.aim.where = fmt.Sprintf("in context %s (%s)", name, conf.Host)
		}
	}
	if out.executor == nil {
		out.executor = out.overNetwork
	}
	return out, nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, eventsv1.AddToScheme, batchv1.AddToScheme,
		authorizationv1.AddToScheme, coordination.AddToScheme, storagev1.AddToScheme,
		v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

// readLimit bounds what is read from the API server for one status.
const readLimit = 15 * time.Second
