package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

func statusCommand(k *kube) *cobra.Command {
	var output string
	var everywhere bool
	cmd := &cobra.Command{
		Use:   "status [CLUSTER]",
		Short: "Show whether a cluster is writable, what happens and what to do; without a name, all clusters",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if everywhere && len(args) > 0 {
				return errors.New("-A lists the clusters of all namespaces; leave out either -A or the name")
			}
			if err := checkFormat(output, "table"); err != nil {
				return err
			}
			s, err := k.open()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), readLimit)
			defer cancel()
			if len(args) == 0 {
				return showAll(ctx, cmd.OutOrStdout(), s, everywhere, output)
			}
			return showOne(ctx, cmd.OutOrStdout(), s, args[0], output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml")
	cmd.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "list the clusters of all namespaces")
	return cmd
}

func showOne(ctx context.Context, out io.Writer, s *session, name, output string) error {
	f, err := gather(ctx, s, name)
	if err != nil {
		return err
	}
	report := Build(f)
	s.aim.report(&report)
	if output != "" {
		return encode(out, output, report)
	}
	return WriteTable(s.aim.printer(out), report)
}

// unreadReport is what is known of a Cluster that cannot be read.
func unreadReport(c *v1alpha1.Cluster, why error) Report {
	return Report{topology: topologyOf(c), Namespace: c.Namespace, Name: c.Name, Taken: time.Now(),
		Created: c.CreationTimestamp.Time, Phase: string(core.ReasonUnreadable), Writable: WritableUnknown,
		Happening: why.Error()}
}

// showAll asks no instances: a list must be quick however many there are. Pods are one request more, and
// without them the last word of an operator that is dead would look like the present.
func showAll(ctx context.Context, out io.Writer, s *session, everywhere bool, output string) error {
	list := &v1alpha1.ClusterList{}
	namespace := s.namespace
	if everywhere {
		namespace = ""
	}
	if err := s.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing Clusters: %w", explain(err))
	}
	pods, unread := podsByCluster(ctx, s.client, list.Items, namespace)
	reports := []Report{}
	for i := range list.Items {
		c := &list.Items[i]
		if why := c.Unread(); why != nil {
			reports = append(reports, unreadReport(c, why))
			continue
		}
		reports = append(reports, Build(Facts{Cluster: c, Pods: pods[client.ObjectKeyFromObject(c)], Now: time.Now(),
			LiveProblem: "instances are asked only when one cluster is named", BackupsProblem: "they are listed only " +
				"when one cluster is named"}))
	}
	for i := range reports {
		s.aim.report(&reports[i])
	}
	if output != "" {
		return encode(out, output, reports)
	}
	if len(reports) == 0 {
		_, err := fmt.Fprintf(out, "There are no Clusters in %s.\n", cmp.Or(namespace, "any namespace"))
		return err
	}
	return WriteList(s.aim.printer(out), reports, unread)
}
