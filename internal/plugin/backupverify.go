package plugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core/verify"
)

func backupVerifyCommand(k *kube) *cobra.Command {
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "verify CLUSTER",
		Short: "Restore the newest backup into a throw-away Cluster, and have its tables checked",
		Long: "Restore the newest backup and the archive of a cluster into a throw-away Cluster named " +
			"CLUSTER-verify,\n" +
			"have the server there check all tables, compare rows with those of the cluster, and say what was found " +
			"and how long the restore took. The throw-away Cluster is deleted then.",
		Example: "  kubectl cnmsql backup verify demo",
		Args:    exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := k.open()
			if err != nil {
				return err
			}
			v := &verifier{newCaller(cmd, s, args[0], true)}
			return v.verify(cmd.Context(), wait, timeout)
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", true,
		"follow the verification until it ends; --wait=false returns when it is asked for")
	cmd.Flags().DurationVar(&timeout, "timeout", 0,
		"how long to follow, 0 is without end; the verification itself goes on")
	return cmd
}

// verifier has backups tried, and follows that.
type verifier struct{ caller }

func (v *verifier) verify(ctx context.Context, wait bool, timeout time.Duration) error {
	c, err := getCluster(ctx, v.client, v.key)
	if err != nil {
		return err
	}
	if _, err := storeOf(c); err != nil {
		return err
	}
	if asked := c.Annotations[v1alpha1.AnnotationVerify]; asked != "" {
		return fmt.Errorf("somebody asked for a verification already (annotation %s: %s), and it waits until the one "+
			"before it, or a Backup, has ended: nothing was done. To see: %s; to take it back: kubectl annotate "+
			"cluster %s -n %s %s-",
			v1alpha1.AnnotationVerify, asked, v.look(), c.Name, c.Namespace, v1alpha1.AnnotationVerify)
	}
	request := v.now().UTC().Format("20060102T150405.000000000Z")
	if err := v.annotate(ctx, c, c.ResourceVersion, map[string]any{v1alpha1.AnnotationVerify: request}); err != nil {
		return fmt.Errorf("writing the annotation %s of Cluster %s: %w (the right to patch clusters is needed)",
			v1alpha1.AnnotationVerify, c.Name, explain(err))
	}
	v.say("Asked for the newest backup of %s to be restored into the throw-away Cluster %s, and checked.",
		c.Name, verify.CopyName(c.Name))
	if !wait {
		v.say("To see what becomes of it: %s", v.look())
		return nil
	}
	return v.followFor(ctx, c, request, timeout)
}

// look is how to see what came of it.
func (v *verifier) look() string {
	return fmt.Sprintf("kubectl get clusters.%s %s -n %s -o jsonpath='{.status.lastVerification}'",
		v1alpha1.GroupVersion.Group, v.key.Name, v.key.Namespace)
}

func (v *verifier) followFor(ctx context.Context, c *v1alpha1.Cluster, request string, timeout time.Duration) error {
	limited := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	news := func(s *v1alpha1.ClusterStatus) string { return verificationNews(s.LastVerification, request) }
	last, err := v.follow(limited, c, news,
		func(_ context.Context, now *v1alpha1.Cluster) error { return v.verdict(now, request) })
	if !errors.Is(err, errPending) {
		return err
	}
	why := fmt.Sprintf("no end after %s", timeout)
	if ctx.Err() != nil {
		why = "interrupted"
	}
	return fmt.Errorf(
		"%s; the verification goes on without this command; the last it said: %s. To see what becomes of it: %s",
		why, news(&last.Status), v.look())
}

// verificationNews is what is said of a verification on its way.
func verificationNews(s *v1alpha1.VerificationStatus, request string) string {
	switch {
	case s == nil:
		return "waiting until the operator begins; if that lasts, see that it runs: " + findOperator
	case s.Request != request && s.EndedAt == nil:
		return "waiting for the verification that runs: " + s.Message
	case s.Request != request:
		return "waiting until the operator begins; if that lasts, see that it runs: " + findOperator
	}
	return fmt.Sprintf("%s: %s", s.Phase, s.Message)
}

// verdict is nil once the backup was found to be good, errPending while nobody knows.
func (v *verifier) verdict(c *v1alpha1.Cluster, request string) error {
	s := c.Status.LastVerification
	isOurs := s != nil && s.Request == request
	switch {
	// The operator notes a request before it takes it off.
	case !isOurs && c.Annotations[v1alpha1.AnnotationVerify] != request:
		return fmt.Errorf("the request is not there any more, and the last verification of %s is not the one that was "+
			"asked for: it was taken back, or another one came after it. See what the last one found: "+
			"kubectl cnmsql backup list %s -n %s; and ask again", c.Name, c.Name, c.Namespace)
	case !isOurs || s.EndedAt == nil:
		return errPending
	}
	if s.Phase != v1alpha1.VerificationSucceeded {
		return fmt.Errorf("the backups of %s could not be verified: %s: %s", c.Name, s.Reason, s.Message)
	}
	compared := "; no rows were compared: " + s.NotCompared
	if s.TablesCompared > 0 {
		compared = fmt.Sprintf(", and the rows of %d are those of %s.", s.TablesCompared, c.Name)
	}
	v.say("The backup %s of %s can be restored: all of its %d tables are sound%s", s.BackupID,
		c.Name, s.Tables, compared)
	if s.RestoredToTime != nil {
		v.say("It was restored to %s, %s.", stamp(s.RestoredToTime.Time), s.RestoredTo)
	}
	v.say("A restore takes %s now, until the new Cluster takes writes.", time.Duration(s.RestoreSeconds)*time.Second)
	return nil
}
