package plugin

import (
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/internal/layout"
)

func backupLostCommand(k *kube) *cobra.Command {
	var epoch int64
	var instance string
	cmd := &cobra.Command{
		Use:   "lost CLUSTER",
		Short: "List what failovers have lost of what was archived, or read it as a binary log",
		Example: "  kubectl cnmsql backup lost demo\n" +
			"  kubectl cnmsql backup lost demo --epoch 3 > lost.binlog && mysqlbinlog -v lost.binlog",
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if epoch != 0 && isTerminal(cmd.OutOrStdout()) {
				return fmt.Errorf("a binary log is not for a terminal; write it to a file: --epoch %d > lost.binlog, "+
					"and read that by mysqlbinlog -v lost.binlog", epoch)
			}
			s, err := k.open()
			if err != nil {
				return err
			}
			c, err := getCluster(cmd.Context(), s.client, types.NamespacedName{Namespace: s.namespace, Name: args[0]})
			if err != nil {
				return err
			}
			if !c.Spec.Backup.Archives() {
				return fmt.Errorf("cluster %s archives no binary logs: set spec.backup.continuousArchiving.enabled, "+
					"and what a failover loses from then on is kept", c.Name)
			}
			return s.runOn(cmd, c, instance, lostCommand(epoch))
		},
	}
	cmd.Flags().Int64Var(&epoch, "epoch", 0, "write what was lost of this epoch to standard output, as a binary log")
	cmd.Flags().StringVar(&instance, "instance", "",
		"instance that reads the archive, by name or number, instead of the primary")
	return cmd
}

// lostCommand is carried out in a Pod that reaches the archive.
func lostCommand(epoch int64) []string {
	out := []string{layout.Binary, "instance", "lost"}
	if epoch != 0 {
		out = append(out, "--epoch", strconv.FormatInt(epoch, 10))
	}
	return out
}

func isTerminal(stream any) bool {
	f, is := stream.(*os.File)
	return is && term.IsTerminal(int(f.Fd()))
}
