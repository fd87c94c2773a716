package testbed

import (
	"context"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/api/v1alpha1"
)

// operatorLines is how much of each operator's log is told: what it did of a Cluster last.
const operatorLines = 200

// Tell writes all by which one finds out afterwards why a Cluster is not as it should be: the
// object, its Pods, the events, the last lines of each instance's log, and of the operators'
// what is about it. What cannot be read is said.
func (b *Bed) Tell(ctx context.Context, key types.NamespacedName, lines int, to io.Writer) {
	for _, args := range [][]string{
		{"get", "cluster", key.Name, "-o", "yaml"}, {"get", "pod,pvc,svc", "-o", "wide"},
		{"get", "events", "--sort-by=.lastTimestamp"},
		{"logs", fmt.Sprintf("--tail=%d", lines), "--prefix", "-l", v1alpha1.LabelCluster + "=" + key.Name},
	} {
		out, err := b.Kubectl(ctx, nil, append([]string{"-n", key.Namespace}, args...)...)
		told(to, "kubectl "+strings.Join(args, " "), err, out)
	}
	b.tellOfOperators(ctx, key, to)
}

// tellOfOperators writes the events of a Cluster and what the operator's Pods have logged of it in
// the last hour. It asks for the log of the container before, too, because an operator that was
// started again tells there what happened.
func (b *Bed) tellOfOperators(ctx context.Context, key types.NamespacedName, to io.Writer) {
	out, err := b.Kubectl(ctx, nil, "-n", key.Namespace, "get", "events", "--sort-by=.lastTimestamp",
		"--field-selector=involvedObject.kind=Cluster,involvedObject.name="+key.Name)
	told(to, "events of Cluster "+key.Name, err, out)
	pods, err := b.Kubectl(ctx, nil, "-n", OperatorNamespace, "get", "pod", "-o", "name",
		"-l", "app.kubernetes.io/component=operator")
	if err != nil {
		told(to, "the operator's Pods", err, "")
	}
	for _, pod := range strings.Fields(pods) {
		for _, of := range []string{"--previous=true", "--previous=false"} {
			out, err := b.Kubectl(ctx, nil, "-n", OperatorNamespace, "logs", "--since=1h", of, pod)
			if lines := linesWith(out, key.Name, operatorLines); err == nil || len(lines) > 0 {
				told(to, pod+" "+of+" of "+key.Name, err, strings.Join(lines, "\n"))
			}
		}
	}
}

func told(to io.Writer, what string, err error, out string) {
	if err != nil {
		what += " (" + err.Error() + ")"
	}
	_, _ = fmt.Fprintf(to, "%s\n%s\n", what, out)
}

// linesWith returns the last n lines that have the word.
func linesWith(text, word string, n int) (out []string) {
	for line := range strings.SplitSeq(text, "\n") {
		if strings.Contains(line, word) {
			out = append(out, line)
		}
	}
	return out[max(0, len(out)-n):]
}
