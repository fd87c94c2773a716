package plugin

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/layout"
)

func mysqlCommand(k *kube) *cobra.Command {
	var instance, account string
	cmd := &cobra.Command{
		Use:   "mysql CLUSTER [-- ARGS]",
		Short: "Open a mysql client on the primary; ARGS are the client's",
		Example: `  kubectl cnmsql mysql demo
  echo 'select 1' | kubectl cnmsql mysql demo
  kubectl cnmsql mysql demo --user app -- -e 'show tables' app`,
		Args: atLeastArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if account != "root" && account != "app" {
				return fmt.Errorf("--user %s is not known; use root, or app for the user in the Secret CLUSTER-app",
					account)
			}
			s, err := k.open()
			if err != nil {
				return err
			}
			c, err := getCluster(cmd.Context(), s.client, types.NamespacedName{Namespace: s.namespace, Name: args[0]})
			if err != nil {
				return err
			}
			name, err := sessionInstance(c, instance, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return s.attach(cmd, name, clientCommand(account, args[1:]))
		},
	}
	cmd.Flags().StringVar(&instance, "instance", "",
		"instance to connect to, by name or number, instead of the primary")
	cmd.Flags().StringVar(&account, "user", "root", "root, or app for the application's user")
	return cmd
}

// clientCommand is carried out in the Pod. The manager's binary finds the client
// and hands it the password, so that this is in no argument and no variable.
func clientCommand(account string, args []string) []string {
	return append([]string{layout.Binary, "instance", "client", "--user", account, "--"}, args...)
}

func sessionInstance(c *v1alpha1.Cluster, instance string, warn io.Writer) (string, error) {
	if instance != "" {
		return instanceNamed(c, instance)
	}
	s := &c.Status
	if s.CurrentPrimary == "" {
		return "", fmt.Errorf("cluster %s has no primary yet: %s; name another instance with --instance", c.Name,
			cmp.Or(inNamespace(c.Namespace, s.PhaseReason), "the operator has not looked at it"))
	}
	if w, because := topologyOf(c).writable(&Facts{Cluster: c}); w != WritableYes {
		sentence(warn, "Warning: %s may not take writes now (%s), and what it holds may be old. %s", s.CurrentPrimary,
			because, inNamespace(c.Namespace, s.PhaseReason))
	}
	return s.CurrentPrimary, nil
}

// attach runs a command in an instance's Pod with this process' standard
// streams, on a terminal when there is one. Its error keeps the exit code.
func (s *session) attach(cmd *cobra.Command, pod string, command []string) error {
	o := remotecommand.StreamOptions{Stdin: cmd.InOrStdin(), Stdout: cmd.OutOrStdout(), Stderr: cmd.ErrOrStderr()}
	if o.Tty = isTerminal(o.Stdin) && isTerminal(o.Stdout); !o.Tty {
		return s.carry(cmd.Context(), pod, command, o)
	}
	stdin, stdout := int(os.Stdin.Fd()), int(os.Stdout.Fd())
	before, err := term.MakeRaw(stdin)
	if err != nil {
		return fmt.Errorf("setting the terminal up: %w", err)
	}
	defer func() { _ = term.Restore(stdin, before) }()
	sizes, stop := watchSize(stdout)
	defer stop()
	o.TerminalSizeQueue = sizes
	return s.carry(cmd.Context(), pod, command, o)
}

// allTaken is the error when no connection was left for a client in a Pod, which ended with err.
type allTaken struct {
	pod string
	err error
}

func (e *allTaken) Unwrap() error { return e.err }

func (e *allTaken) Error() string {
	return fmt.Sprintf("all connections of %s are taken, and so is the one that is kept for root. Have the "+
		"application close some, "+
		"or raise max_connections in spec.mysql.parameters, for which the instances are restarted one by one", e.pod)
}

// explainExec is the error of a client in a Pod. Its exit code stays in it.
func explainExec(pod string, full bool, err error) error {
	switch {
	case err == nil:
		return nil
	case isExit(err) && full:
		return &allTaken{pod, err}
	case isExit(err):
		return err
	}
	return fmt.Errorf("running the client in Pod %s: %w; see that it runs: kubectl cnmsql status", pod, err)
}

func isExit(err error) bool {
	var exit interface{ ExitStatus() int }
	return errors.As(err, &exit)
}

// streams of a command in a Pod: whether it reads, and whether on a terminal.
type streams struct{ in, tty bool }

// executors make what runs a command in a Pod.
type executors func(pod string, command []string, with streams) (remotecommand.Executor, error)

func (s *session) overNetwork(pod string, command []string, with streams) (remotecommand.Executor, error) {
	typed, err := typedcore.NewForConfig(s.conf)
	if err != nil {
		return nil, err
	}
	url := typed.RESTClient().Post().Resource("pods").Namespace(s.namespace).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: layout.Container, Command: command,
			Stdin: with.in, Stdout: true, Stderr: !with.tty, TTY: with.tty}, scheme.ParameterCodec).URL()
	old, err := remotecommand.NewSPDYExecutor(s.conf, http.MethodPost, url)
	if err != nil {
		return nil, err
	}
	socket, err := remotecommand.NewWebSocketExecutor(s.conf, http.MethodGet, url.String())
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(socket, old, needsSPDY)
}

// needsSPDY reports whether the connection failed as it does at proxies and old API servers, which
// know nothing of websockets.
func needsSPDY(err error) bool {
	return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
}
