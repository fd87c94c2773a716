package plugin

import (
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/remotecommand"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/layout"
)

// runIn runs a command in the Pod of an instance, of the primary if none is named, and shows what it
// writes.
func (k *kube) runIn(cmd *cobra.Command, cluster, instance string, command []string) error {
	s, err := k.open()
	if err != nil {
		return err
	}
	c, err := getCluster(cmd.Context(), s.client, types.NamespacedName{Namespace: s.namespace, Name: cluster})
	if err != nil {
		return err
	}
	return s.runOn(cmd, c, instance, command)
}

// runOn is runIn of a Cluster that was read.
func (s *session) runOn(cmd *cobra.Command, c *v1alpha1.Cluster, instance string, command []string) error {
	pod, err := sessionInstance(c, instance, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	return s.carry(cmd.Context(), pod, command,
		remotecommand.StreamOptions{Stdout: cmd.OutOrStdout(), Stderr: cmd.ErrOrStderr()})
}

func dumpCommand(k *kube) *cobra.Command {
	var instance string
	cmd := &cobra.Command{
		Use:   "dump CLUSTER -- DATABASE [TABLE...]",
		Short: "Write tables of a cluster as SQL that another cluster can take; arguments are those of mysqldump",
		Example: `  kubectl cnmsql dump demo-2 -- shop orders | kubectl cnmsql mysql demo -- shop
  kubectl cnmsql dump demo -- shop > shop.sql`,
		Args: atLeastArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return k.runIn(cmd, args[0], instance, dumpArgs(args[1:]))
		},
	}
	cmd.Flags().StringVar(&instance, "instance", "",
		"instance to read from, by name or number, instead of the primary")
	return cmd
}

// dumpArgs is carried out in the Pod. The manager's binary knows mysqldump, the password, and the
// flags without which another cluster would not take the dump.
func dumpArgs(args []string) []string {
	return append([]string{layout.Binary, "instance", "dump", "--"}, args...)
}
