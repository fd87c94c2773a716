package testbed

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

// OperatorNamespace is where dist/install.yaml puts the operator.
const OperatorNamespace = "cnmsql-system"

// Operator is the Deployment in dist/install.yaml.
var Operator = types.NamespacedName{Namespace: OperatorNamespace, Name: "cnmsql-operator"}

var (
	imageLine    = regexp.MustCompile(`(?m)^([ \t]*(?:- )?image:[ \t]+)\S+$`)
	operatorFlag = regexp.MustCompile(`--operator-image=\S+?(["']?)(\s|$)`)
	defaultFlag  = regexp.MustCompile(`--default-image=\S+?(["']?)(\s|$)`)
)

// Install applies dist/install.yaml with the given images, and waits for the
// operator.
func (b *Bed) Install(ctx context.Context, operatorImage, mysqlImage string) error {
	return b.timed(ctx, "installing the operator", func(ctx context.Context) error {
		text, err := os.ReadFile(filepath.Join(b.root, "dist", "install.yaml"))
		if err != nil {
			return err
		}
		manifest := imageLine.ReplaceAllString(string(text), "${1}"+operatorImage)
		manifest = operatorFlag.ReplaceAllString(manifest, "--operator-image="+operatorImage+"$1$2")
		manifest = defaultFlag.ReplaceAllString(manifest, "--default-image="+mysqlImage+"$1$2")
		if _, err := b.Kubectl(ctx, strings.NewReader(manifest), "apply", "--server-side", "--force-conflicts",
			"-f", "-"); err != nil {
			return err
		}
		if b.Name != "" {
			// The image's name stays the same when its content changes.
			if err := b.restartOperator(ctx); err != nil {
				return err
			}
		}
		return b.operatorReady(ctx)
	})
}

// Release installs another build of the operator, which does what this one does, under
// another tag.
func (b *Bed) Release(ctx context.Context, tag string) error {
	binary, err := os.ReadFile(filepath.Join(b.bin, "cnmsql"))
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	// What comes after the end of the program changes nothing but its digest.
	built, archive := filepath.Join(dir, "cnmsql"), filepath.Join(dir, "operator.tar")
	if err := os.WriteFile(built, append(binary, tag...), 0o755); err != nil {
		return err
	}
	if _, err := b.run(ctx, nil, "go", "run", "./tools/image", "operator", "--binary", built, "--tag", tag, "--out",
		archive); err != nil {
		return err
	}
	if _, err := b.Localkube(ctx, "load", archive); err != nil {
		return err
	}
	return b.Install(ctx, tag, MySQLImage)
}

func (b *Bed) restartOperator(ctx context.Context) error {
	_, err := b.Kubectl(ctx, nil, "-n", OperatorNamespace, "delete", "pod", "--all", "--now", "--wait=true")
	return err
}

func (b *Bed) operatorReady(ctx context.Context) error {
	var d appsv1.Deployment
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 2*time.Minute, true,
		func(ctx context.Context) (bool, error) {
			if err := b.Client.Get(ctx, Operator, &d); err != nil {
				return false, err
			}
			return d.Status.ObservedGeneration >= d.Generation && d.Status.AvailableReplicas >= *d.Spec.Replicas, nil
		})
	if err != nil {
		out, _ := b.Kubectl(context.WithoutCancel(ctx), nil, "-n", OperatorNamespace, "describe", "pods")
		return fmt.Errorf("the operator did not become available: %w\n%s", err, out)
	}
	return nil
}
