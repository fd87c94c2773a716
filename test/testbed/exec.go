package testbed

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/remotecommand"
)

// Exec runs a command in a container, through the API server.
func (b *Bed) Exec(ctx context.Context, pod types.NamespacedName, container string, command ...string) error {
	typed, err := typedcore.NewForConfig(b.Config)
	if err != nil {
		return err
	}
	url := typed.RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: container, Command: command, Stdout: true, Stderr: true},
			scheme.ParameterCodec).URL()
	run, err := remotecommand.NewSPDYExecutor(b.Config, http.MethodPost, url)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := run.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &out}); err != nil {
		return fmt.Errorf("run %q in %s: %w\n%s", command, pod, err, out.String())
	}
	return nil
}
