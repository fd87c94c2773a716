package plugin

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"cnmsql.co/api/v1alpha1"
)

// verifies is an operator that answers a request in steps.
func verifies(steps ...v1alpha1.VerificationStatus) func(*scene) {
	return func(s *scene) {
		request := s.cluster().Annotations[v1alpha1.AnnotationVerify]
		for _, step := range steps {
			step.Request = request
			s.decide(func(st *v1alpha1.ClusterStatus) { st.LastVerification = &step })
		}
	}
}

func withStore() *v1alpha1.Cluster {
	c := healthy().Cluster
	c.Spec.Backup = &v1alpha1.BackupDefaults{ObjectStore: &v1alpha1.ObjectStoreSpec{Bucket: "b"}}
	return c
}

func TestVerifyFollowsToTheEnd(t *testing.T) {
	end := metav1.NewTime(time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC))
	s := newScene(t, withStore(), verifies(v1alpha1.VerificationStatus{Phase: v1alpha1.VerificationRestoring,
		Message: "restores 7 percent"},
		v1alpha1.VerificationStatus{Phase: v1alpha1.VerificationSucceeded, EndedAt: &end, BackupID: "b1", Tables: 40,
			RestoreSeconds: 95, TablesCompared: 7,
			RestoredTo: "u:1-9", RestoredToTime: &end}))
	v := &verifier{s.caller}
	if err := v.verify(context.Background(), true, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	s.mustSay("into the throw-away Cluster demo-verify")
	s.mustSay(
		"The backup b1 of demo can be restored: all of its 40 tables are sound, and the rows of 7 are those of demo.")
	s.mustSay("It was restored to 2026-03-01 03:00:00Z, u:1-9.")
	s.mustSay("A restore takes 1m35s now")
}

func TestVerifyFailsWithWhatWasFound(t *testing.T) {
	end := metav1.Now()
	s := newScene(t, withStore(), verifies(v1alpha1.VerificationStatus{Phase: v1alpha1.VerificationFailed,
		EndedAt: &end, Reason: "R", Message: "shop.orders is damaged"}))
	v := &verifier{s.caller}
	mustFail(t, v.verify(context.Background(), true, 5*time.Second), "could not be verified: R: shop.orders is damaged")
}

func TestVerifyIsNotTakenForAnEarlierOne(t *testing.T) {
	c, end := withStore(), metav1.Now()
	c.Status.LastVerification = &v1alpha1.VerificationStatus{Phase: v1alpha1.VerificationSucceeded,
		Request: "earlier", EndedAt: &end}
	s := newScene(t, c, nil)
	v := &verifier{s.caller}
	mustFail(t, v.verify(context.Background(), true, 300*time.Millisecond), "no end after 300ms; the verification "+
		"goes on without this command")
}

// TestVerifyEndsWhenItsRequestIsNotThereAnyMore: it is without a --timeout where a person or a cron
// job waits.
func TestVerifyEndsWhenItsRequestIsNotThereAnyMore(t *testing.T) {
	takeBack := func(s *scene) {
		c := s.cluster()
		delete(c.Annotations, v1alpha1.AnnotationVerify)
		if err := s.client.Update(context.Background(), c); err != nil {
			t.Error(err)
		}
	}
	end := metav1.Now()
	for name, operator := range map[string]func(*scene){
		"it was taken back": takeBack,
		"another followed": func(s *scene) {
			takeBack(s)
			s.decide(func(st *v1alpha1.ClusterStatus) {
				st.LastVerification = &v1alpha1.VerificationStatus{Phase: v1alpha1.VerificationSucceeded, EndedAt: &end}
			})
		},
	} {
		s := newScene(t, withStore(), operator)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		mustFail(t, (&verifier{s.caller}).verify(ctx, true, 0), "it was taken back, or another one came after it")
		if ctx.Err() != nil {
			t.Errorf("%s: it waited for ever", name)
		}
	}
}

func TestFollowingEndsWithTheCluster(t *testing.T) {
	for _, again := range []bool{false, true} {
		s := newScene(t, withStore(), func(s *scene) {
			if err := s.client.Delete(context.Background(), s.cluster()); err != nil {
				t.Error(err)
			}
			if c := withStore(); again {
				c.UID = "other"
				if err := s.client.Create(context.Background(), c); err != nil {
					t.Error(err)
				}
			}
		})
		deaf(s)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		mustFail(t, (&verifier{s.caller}).verify(ctx, true, 0), "was deleted meanwhile")
	}
}

// deaf: each watch ends at once, as it does when its version is too old.
func deaf(s *scene) {
	s.client = interceptor.NewClient(s.client, interceptor.Funcs{
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
			opts ...client.ListOption) (watch.Interface, error) {
			w, err := c.Watch(ctx, list, opts...)
			if err == nil {
				w.Stop()
			}
			return w, err
		}})
}

func TestVerifyRefusesWhatCannotBe(t *testing.T) {
	s := newScene(t, healthy().Cluster, nil)
	mustFail(t, (&verifier{s.caller}).verify(context.Background(), true, time.Second), "names no object store")
	c := withStore()
	c.Annotations = map[string]string{v1alpha1.AnnotationVerify: "r1"}
	s = newScene(t, c, nil)
	mustFail(t, (&verifier{s.caller}).verify(context.Background(), true, time.Second),
		"somebody asked for a verification already")
}

func TestVerifyNeedNotWait(t *testing.T) {
	s := newScene(t, withStore(), nil)
	if err := (&verifier{s.caller}).verify(context.Background(), false, 0); err != nil {
		t.Fatal(err)
	}
	s.mustSay("To see what becomes of it: kubectl get clusters.mysql.cnmsql.co demo -n shop")
	if v, _ := s.annotation(s.cluster(), v1alpha1.AnnotationVerify); v == "" {
		t.Error("nothing was asked for")
	}
}

func TestTheListSaysWhatTheLastVerificationFound(t *testing.T) {
	for want, s := range map[string]v1alpha1.VerificationStatus{
		"Verified    yes, 60s ago: all is sound\n": {Phase: v1alpha1.VerificationSucceeded, Message: "all is sound",
			EndedAt: second(time.Minute)},
		"Verified    NO, 60s ago: R: damaged; the last that succeeded ended 5h ago\n": {
			Phase: v1alpha1.VerificationFailed, Reason: "R", Message: "damaged",
			EndedAt: second(time.Minute), LastSucceededAt: second(5 * time.Hour)},
		"Verified    Restoring: 7 percent; none succeeded before\n": {Phase: v1alpha1.VerificationRestoring,
			Message: "7 percent"},
	} {
		c := archived()
		c.Status.LastVerification = &s
		var out strings.Builder
		if err := WriteBackups(&out, listOf(t, c)); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %q in\n%s", want, out.String())
		}
	}
}
