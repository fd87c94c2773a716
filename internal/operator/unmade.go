package operator

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/resources"
)

// unmadePods remembers what is awaited in vain, by the Cluster.
type unmadePods struct {
	mu    sync.Mutex
	names map[podKey]*core.NotMade
}

func newUnmadePods() *unmadePods { return &unmadePods{names: map[podKey]*core.NotMade{}} }

// change changes what is remembered of an instance.
func (u *unmadePods) change(key podKey, do func(*core.NotMade)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.names[key] == nil {
		u.names[key] = &core.NotMade{}
	}
	do(u.names[key])
}

func (u *unmadePods) asked(key podKey, name string) {
	u.change(key, func(m *core.NotMade) { m.Ask(name) })
}

func (u *unmadePods) noteUnasked(key podKey, name string) {
	u.change(key, func(m *core.NotMade) { m.Unasked(name) })
}

func (u *unmadePods) note(key podKey, name string) {
	u.change(key, func(m *core.NotMade) { m.Refused(name) })
}

func (u *unmadePods) of(c *v1alpha1.Cluster, instance string) []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if m := u.names[podKeyOf(c, instance)]; m != nil {
		return m.Names()
	}
	return nil
}

// keepOnly forgets those of all Clusters of that name but the one of that UID.
func (u *unmadePods) keepOnly(cluster types.NamespacedName, uid types.UID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.DeleteFunc(u.names, ofFormer[*core.NotMade](cluster, uid))
}

// askedAgain is after how long client-go, at the earliest, asks once more by itself when
// the API server wants that. Its answer to the second request says nothing of the first,
// which may have made the Pod.
const askedAgain = time.Second

// isRefused reports whether the API server has answered that it did not make an object, and was
// surely asked only once. A server's own error, a timeout or a broken connection may come after
// the object was made, so that these do not count.
func isRefused(err error, took time.Duration) bool {
	var answer apierrors.APIStatus
	if took >= askedAgain || !errors.As(err, &answer) {
		return false
	}
	code := answer.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusRequestTimeout
}

// askForPod has a Pod made by the name by which it is awaited, and remembers it if it
// surely was not.
func (a *actor) askForPod(c *v1alpha1.Cluster, pod *corev1.Pod) error {
	key, name := podKeyOf(c, pod.Name), pod.Annotations[v1alpha1.AnnotationAwaited]
	a.unmade.asked(key, name)
	c = c.DeepCopy() // for what goes on beside whoever has it
	return a.request(c, podOf(pod.Name), func(ctx context.Context) error {
		begun := time.Now()
		err := a.client.Create(ctx, pod, client.FieldOwner(resources.FieldManager))
		if isRefused(err, time.Since(begun)) {
			a.unmade.note(key, name)
		}
		return a.forgiven(ctx, c, pod, err)
	})
}

// askLimit bounds a look at whether a Pod is really gone.
const askLimit = 5 * time.Second

// neverRan reports whether a deleted Pod, which was made under a name by which it is awaited,
// never had a node. It asks the API server, for the watch also calls a Pod deleted that only lost
// its labels. When that cannot be asked, the answer is false.
func neverRan(ctx context.Context, live client.Reader, pod *corev1.Pod) bool {
	if pod.Spec.NodeName != "" || pod.Annotations[v1alpha1.AnnotationAwaited] == "" {
		return false
	}
	there, err := find(ctx, live, &corev1.Pod{}, client.ObjectKeyFromObject(pod))
	return err == nil && (there == nil || there.UID != pod.UID)
}
