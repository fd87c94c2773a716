package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/resources"
)

// reachAgain is the pause before an API server is asked again that could not be: a backup
// may take hours, in which the API server is restarted.
const reachAgain = 2 * time.Second

// followFor follows a Backup to its end, for at most a timeout if that is not 0.
func (t *taker) followFor(ctx context.Context, b *v1alpha1.Backup, timeout time.Duration) error {
	limited := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	last, err := t.follow(limited, b)
	t.line.end()
	if !errors.Is(err, errPending) {
		return err
	}
	why := fmt.Sprintf("no end after %s", timeout)
	if ctx.Err() != nil {
		why = "interrupted"
	}
	return fmt.Errorf("%s; the backup goes on without this command (%s is %s). To follow it again: %s; "+
		"to give it up: kubectl delete backups.%s %s -n %s",
		why, last.Name, phaseOf(last), followCommand(last), v1alpha1.GroupVersion.Group, last.Name, last.Namespace)
}

// follow shows what becomes of a Backup until it has ended. errPending: ctx ended first.
func (t *taker) follow(ctx context.Context, b *v1alpha1.Backup) (*v1alpha1.Backup, error) {
	began, said := t.now(), map[string]bool{}
	say := func(text string) {
		// What goes back and forth is said once.
		if !said[text] {
			said[text] = true
			t.line.say(fmt.Sprintf("%6.1fs  %s", t.now().Sub(began).Seconds(), text))
		}
	}
	for {
		for _, text := range backupNews(b) {
			say(text)
		}
		if text, about := backupProgress(b, t.now()); text != "" {
			t.line.show(text, about)
		}
		if err := t.backupVerdict(b); !errors.Is(err, errPending) {
			return b, err
		}
		next, err := t.next(ctx, b, say)
		if err != nil {
			return b, err
		}
		b = next
	}
}

func phaseOf(b *v1alpha1.Backup) string {
	return cmp.Or(b.Status.Phase, "not seen by the operator yet")
}

// next is the Backup once it has changed. An API server that is away for a while is told,
// and asked again.
func (t *taker) next(ctx context.Context, b *v1alpha1.Backup, say func(string)) (*v1alpha1.Backup, error) {
	for {
		wait := watchAgain
		now, err := t.change(ctx, b)
		switch {
		case ctx.Err() != nil:
			return nil, errPending
		case now != nil:
			return now, nil
		case apierrors.IsNotFound(err):
			return nil, fmt.Errorf("the Backup %s was deleted before it ended, and its Job with it: there is no "+
				"backup to restore from", b.Name)
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			return nil, fmt.Errorf("following Backup %s: %w (the right to get and watch backups is needed); the "+
				"backup goes on", b.Name, err)
		case err != nil:
			say(fmt.Sprintf("the API server could not be asked, the backup goes on meanwhile: %v", err))
			wait = reachAgain
		}
		if !pause(ctx, wait) {
			return nil, errPending
		}
	}
}

// change waits for a change of a Backup; nil without an error when the watch ended first.
// What changed before the watch began is read.
func (t *taker) change(ctx context.Context, b *v1alpha1.Backup) (*v1alpha1.Backup, error) {
	w, err := t.client.Watch(ctx, &v1alpha1.BackupList{}, &client.ListOptions{
		Namespace: b.Namespace, FieldSelector: fields.OneTermEqualSelector("metadata.name", b.Name)})
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	now := &v1alpha1.Backup{}
	if err := t.client.Get(ctx, client.ObjectKeyFromObject(b), now); err != nil {
		return nil, err
	}
	for now.ResourceVersion == b.ResourceVersion || now.Name != b.Name {
		change, open := waitFor(ctx, w.ResultChan())
		next, is := change.Object.(*v1alpha1.Backup)
		if !open || !is {
			return nil, nil
		}
		if now = next; change.Type == watch.Deleted && now.Name == b.Name {
			return nil, gone(now.Name)
		}
	}
	if now.UID != b.UID {
		return nil, gone(b.Name)
	}
	return now, nil
}

func gone(name string) error {
	return apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("backups").GroupResource(), name)
}

// waitFor is the next change of a watch; false when it, or ctx, has ended.
func waitFor(ctx context.Context, changes <-chan watch.Event) (watch.Event, bool) {
	select {
	case change, open := <-changes:
		return change, open
	case <-ctx.Done():
		return watch.Event{}, false
	}
}

// backupNews is what is said of a Backup besides its progress.
func backupNews(b *v1alpha1.Backup) []string {
	s := &b.Status
	switch s.Phase {
	case "":
		return []string{"waiting until the operator sees it; if that lasts, see that it runs: " + findOperator}
	case v1alpha1.BackupPending:
		return []string{fmt.Sprintf("%s, it waits (%s): %s", s.Phase, s.Reason, s.Error)}
	case v1alpha1.BackupRunning:
		out := []string{fmt.Sprintf("%s: %s is copied to %s as %s", s.Phase, s.InstanceName,
			s.DestinationPath, s.BackupID)}
		if s.InstanceReason != "" {
			out = append(out, fmt.Sprintf("%s is the primary: %s", s.InstanceName, s.InstanceReason))
		}
		switch {
		case s.Error == "":
		case s.Reason != "":
			out = append(out, fmt.Sprintf("it waits (%s): %s", s.Reason, s.Error))
		default:
			out = append(out, "it last said: "+s.Error)
		}
		return out
	}
	return nil
}

// backupVerdict is nil once the backup is there, errPending while it may come.
func (t *taker) backupVerdict(b *v1alpha1.Backup) error {
	s := &b.Status
	switch s.Phase {
	case v1alpha1.BackupCompleted:
		t.line.end()
		t.say("The backup %s of %s is complete: %s of data, %s stored at %s as %s, taken from %s in %s.",
			b.Name, b.Spec.Cluster.Name,
			sized(s.Size), sized(s.StoredSize), cmp.Or(s.DestinationPath, "?"), s.BackupID,
			s.InstanceName, took(b, t.now()))
		t.say("To begin a new Cluster with it: kubectl cnmsql restore %s --name NEW --backup %s -n %s",
			b.Spec.Cluster.Name, b.Name, b.Namespace)
		return nil
	case v1alpha1.BackupFailed:
		return fmt.Errorf("the backup %s of %s failed: %s: %s. %s", b.Name, b.Spec.Cluster.Name, s.Reason,
			s.Error, afterFailure(b))
	default:
		return errPending
	}
}

// afterFailure is what to do; why it failed, the operator has said.
func afterFailure(b *v1alpha1.Backup) string {
	text := "A Failed one stays so: mend the cause"
	if b.Status.JobName != "" {
		text += fmt.Sprintf(" (what the Job said: kubectl logs -n %s job/%s)", b.Namespace,
			resources.BackupJobName(b.Name))
	}
	return text + fmt.Sprintf(", and take another: kubectl cnmsql backup %s -n %s", b.Spec.Cluster.Name, b.Namespace)
}
