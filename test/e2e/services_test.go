//go:build e2e

package e2e

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/test/testbed"
)

// additionalServices are one for each role, beside the default ones.
const additionalServices = `
  managed:
    services:
      additional:
      - {name: orders, selectorType: rw, serviceTemplate: {spec: {type: NodePort}}}
      - name: reports
        selectorType: ro
        updateStrategy: replace
        serviceTemplate: {metadata: {labels: {pool: reporting}}}
      - {name: dashboards, selectorType: r}
`

// TestSingleInstance is a Cluster of one instance. What a user says about its Services is what there
// is, and it is writable again after its mysqld or its Pod is gone, with all that was acknowledged.
func TestSingleInstance(t *testing.T) {
	newStory(t, "services", applies(single)).play([]step{
		{"ServicesFollowTheSpec", (*world).servicesFollowTheSpec, always, one},
		{"CopiedPodIsNoInstance", (*world).copiedPodIsNoInstance, always, one},
		{"RefusedServiceHoldsUpNothingElse", (*world).refusedServiceHoldsUpNothingElse, always, one},
		{"MysqldKilled", (*world).mysqldOfOneKilled, always, one},
	})
}

// routeByRole: Services for writes, for reads on replicas and for reads anywhere lead to
// the primary, to the two others, and to all three. kube-proxy may need two seconds to
// learn of the last that became ready.
func (w *world) routeByRole(rw, ro, r string) {
	w.t.Helper()
	primary, replicas := w.primary(), w.replicas()
	for service, want := range map[string][]string{rw: {primary}, ro: replicas,
		r: append([]string{primary}, replicas...)} {
		slices.Sort(want)
		seen := w.behind(service)
		for began := time.Now(); !slices.Equal(seen, want) && time.Since(began) < 5*time.Second; {
			seen = w.behind(service)
		}
		if !slices.Equal(seen, want) {
			w.t.Errorf("-%s leads to %v, not to %v", service, seen, want)
		}
	}
}

// behind tells who answers 24 logins through a Service.
func (w *world) behind(service string) []string {
	w.t.Helper()
	seen := map[string]bool{}
	for range 24 {
		db := w.open(service)
		seen[w.ask(db, "SELECT @@hostname")] = true
		_ = db.Close()
	}
	return slices.Sorted(maps.Keys(seen))
}

// additionalServicesRouteByRole, under names that the servers' certificates are good for,
// before and after a switchover.
func (w *world) additionalServicesRouteByRole() {
	w.routeByRole("orders", "reports", "dashboards")
	to := w.replica()
	w.switchTo(to)
	w.becomes(time.Minute, func(c *v1alpha1.Cluster) bool {
		return c.Status.CurrentPrimary == to && testbed.Healthy(c)
	})
	for service, leads := range map[string]bool{"orders": true, "reports": false, "dashboards": true} {
		w.waitRouted(service, to, leads)
	}
	w.plugin([]string{"status", w.key.Name}, w.key.Name+"-orders."+w.key.Namespace+".svc:3306")
}

// manageNothing takes back what manage said.
func (w *world) manageNothing() {
	w.t.Helper()
	w.kubectl("-n", w.key.Namespace, "patch", "cluster", w.key.Name, "--type=merge", "-p", `{"spec":{"managed":null}}`)
}

// manage says again what spec.managed.services is.
func (w *world) manage(services string) {
	w.t.Helper()
	w.kubectl("-n", w.key.Namespace, "patch", "cluster", w.key.Name, "--type=merge", "-p",
		`{"spec":{"managed":{"services":`+services+`}}}`)
}

// awaitServices waits until the cluster's Services that lead to a role are so, each told
// as "name type labels annotations".
func (w *world) awaitServices(want ...string) {
	w.t.Helper()
	var seen []string
	err := wait.PollUntilContextTimeout(w.ctx, 100*time.Millisecond, 20*time.Second, true,
		func(ctx context.Context) (bool, error) {
			var all corev1.ServiceList
			err := bed.Client.List(ctx, &all, client.InNamespace(w.key.Namespace),
				client.MatchingLabels{v1alpha1.LabelCluster: w.key.Name, "app.kubernetes.io/component": "cluster"})
			seen = nil
			for _, s := range all.Items {
				seen = append(seen, strings.Join([]string{s.Name, string(s.Spec.Type), s.Labels["pool"],
					s.Annotations["scheme"]}, " "))
			}
			slices.Sort(seen)
			return slices.Equal(seen, want), err
		})
	if err != nil {
		w.t.Fatalf("the Services are %q (%v), and should be %q", seen, err, want)
	}
}

func (w *world) servicesFollowTheSpec() {
	w.awaitServices("services-r ClusterIP  ", "services-ro ClusterIP  ", "services-rw ClusterIP  ")
	w.manage(`{"disabledDefaultServices":["ro"],
		"template":{"metadata":{"labels":{"pool":"shop"},"annotations":{"scheme":"internal"}},
			"spec":{"type":"NodePort"}},
		"additional":[{"name":"orders","selectorType":"rw"},{"name":"elsewhere","selectorType":"r",
			"serviceTemplate":{"spec":{"type":"ExternalName","externalName":"db.example.com"}}}]}`)
	w.awaitServices("services-elsewhere ExternalName  ", "services-orders ClusterIP  ",
		"services-r NodePort shop internal", "services-rw NodePort shop internal")
	w.manage(`{"disabledDefaultServices":null,"template":{"metadata":{"annotations":null},"spec":null},
		"additional":[{"name":"orders","selectorType":"rw","serviceTemplate":{"spec":{"type":"LoadBalancer"}}},
			{"name":"elsewhere","selectorType":"r"}]}`)
	w.awaitServices("services-elsewhere ClusterIP  ", "services-orders LoadBalancer  ", "services-r ClusterIP shop ",
		"services-ro ClusterIP shop ", "services-rw ClusterIP shop ")
	w.manageNothing()
	w.awaitServices("services-r ClusterIP  ", "services-ro ClusterIP  ", "services-rw ClusterIP  ")
}

// refusedServiceHoldsUpNothingElse: the API server refuses an additional Service for what
// no schema can know. It is told; the other Services are made, and a Pod that was deleted, with all that was
// acknowledged.
func (w *world) refusedServiceHoldsUpNothingElse() {
	const oneNodePort = `{"spec":{"type":"LoadBalancer","externalTrafficPolicy":"Local","healthCheckNodePort":32111}}`
	first := `{"name":"first","selectorType":"rw","serviceTemplate":` + oneNodePort + `}`
	w.manage(`{"additional":[` + first + `]}`)
	w.awaitServices("services-first LoadBalancer  ", "services-r ClusterIP  ", "services-ro ClusterIP  ",
		"services-rw ClusterIP  ")
	w.manage(`{"additional":[` + first + `,
		{"name":"second","selectorType":"rw","serviceTemplate":` + oneNodePort + `},
		{"name":"third","selectorType":"rw"}]}`)
	w.awaitServices("services-first LoadBalancer  ", "services-r ClusterIP  ", "services-ro ClusterIP  ",
		"services-rw ClusterIP  ", "services-third ClusterIP  ")
	w.plugin([]string{"status", w.key.Name}, "services-1 takes writes; could not apply Service services-second",
		"see spec.managed.services")
	w.podOfOneDeleted()
	w.manageNothing()
	w.healthy(time.Minute)
	w.awaitServices("services-r ClusterIP  ", "services-ro ClusterIP  ", "services-rw ClusterIP  ")
	if status := w.plugin([]string{"status", w.key.Name}); strings.Contains(status, "could not") {
		w.t.Errorf("it is still told:\n%s", status)
	}
}
