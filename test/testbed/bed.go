package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"cnmsql.co/api/v1alpha1"
)

// Images that the local Kubernetes is given.
const (
	OperatorImage = "localhost/cnmsql/operator:dev"
	MySQLImage    = "localhost/cnmsql/mysql:9.7"
)

// Bed is a Kubernetes with the operator on it.
type Bed struct {
	// Name of the local Kubernetes; "" when it is somebody else's.
	Name       string
	Kubeconfig string
	Config     *rest.Config
	Client     client.Client

	root string    // of the repository
	bin  string    // built programs
	log  io.Writer // progress
}

// Local brings up (or repairs) the local Kubernetes of that name and loads the
// images into it.
func Local(ctx context.Context, name string, log io.Writer) (*Bed, error) {
	root, err := repository(ctx)
	if err != nil {
		return nil, err
	}
	b := &Bed{Name: name, root: root, bin: filepath.Join(root, "bin"), log: log}
	steps := []struct {
		what string
		do   func(context.Context) error
	}{
		{"building localkube", b.buildLocalkube},
		{"bringing up a local Kubernetes (the first time, it is built, which takes minutes)", b.up},
		{"providing kubectl", b.provideKubectl},
		{"building the images", b.images},
		{"loading the images on the nodes", b.load},
	}
	for _, s := range steps {
		if err := b.timed(ctx, s.what, s.do); err != nil {
			return nil, err
		}
	}
	return b, b.connect()
}

// Existing uses the Kubernetes that a kubeconfig names. Its nodes must be able to
// pull the images.
func Existing(ctx context.Context, kubeconfig string, log io.Writer) (*Bed, error) {
	root, err := repository(ctx)
	if err != nil {
		return nil, err
	}
	b := &Bed{Kubeconfig: kubeconfig, root: root, bin: filepath.Join(root, "bin"), log: log}
	return b, b.connect()
}

func repository(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("finding the repository (run this inside it): %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

func (b *Bed) timed(ctx context.Context, what string, do func(context.Context) error) error {
	begun := time.Now()
	b.say("%s ...", what)
	if err := do(ctx); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	b.say("%s: %s", what, time.Since(begun).Round(100*time.Millisecond))
	return nil
}

func (b *Bed) say(format string, args ...any) { fmt.Fprintf(b.log, format+"\n", args...) }

func (b *Bed) buildLocalkube(ctx context.Context) error {
	_, err := b.run(ctx, nil, "go", "build", "-C", "tools/localkube", "-o", filepath.Join(b.bin, "localkube"), ".")
	return err
}

func (b *Bed) up(ctx context.Context) error {
	out, err := b.Localkube(ctx, "up")
	b.Kubeconfig = strings.TrimSpace(out)
	return err
}

// provideKubectl puts the kubectl of the same build beside the other programs.
func (b *Bed) provideKubectl(ctx context.Context) error {
	built, err := b.Localkube(ctx, "build")
	if err != nil {
		return err
	}
	link := filepath.Join(b.bin, "kubectl")
	if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Symlink(strings.TrimSpace(built), link)
}

// images are built from the tree as it is.
func (b *Bed) images(ctx context.Context) error {
	_, err := b.run(ctx, nil, "make", "--no-print-directory", "image")
	return err
}

// LoadMySQL puts MySQL's image of another release on the nodes, and returns its name.
func (b *Bed) LoadMySQL(ctx context.Context, release string) (string, error) {
	archive := filepath.Join(b.bin, "mysql-"+release+".tar")
	name := "localhost/cnmsql/mysql:" + release
	if _, err := b.run(ctx, nil, "go", "run", "./tools/image", "mysql", "--release", release, "--tag", name, "--out",
		archive); err != nil {
		return "", err
	}
	_, err := b.Localkube(ctx, "load", archive)
	return name, err
}

func (b *Bed) load(ctx context.Context) error {
	_, err := b.Localkube(ctx, "load", filepath.Join(b.bin, "operator.tar"), filepath.Join(b.bin, "mysql.tar"))
	return err
}

func (b *Bed) connect() error {
	ctrllog.SetLogger(logr.Discard()) // the client library insists on a decision
	conf, err := clientcmd.BuildConfigFromFlags("", b.Kubeconfig)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	conf.QPS = -1 // tests ask often
	b.Config = conf
	b.Client, err = client.New(conf, client.Options{Scheme: scheme})
	return err
}

// Localkube runs the local Kubernetes' own command and returns what it printed.
func (b *Bed) Localkube(ctx context.Context, args ...string) (string, error) {
	return b.run(ctx, nil, filepath.Join(b.bin, "localkube"), append(args, "--name", b.Name)...)
}

// Kubectl runs kubectl and returns what it printed.
func (b *Bed) Kubectl(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	if b.Name != "" {
		return b.run(ctx, stdin, filepath.Join(b.bin, "localkube"),
			append([]string{"kubectl", "--name", b.Name, "--"}, args...)...)
	}
	return b.run(ctx, stdin, "kubectl", append([]string{"--kubeconfig", b.Kubeconfig}, args...)...)
}

// run runs a command in the repository; its error says what it printed.
func (b *Bed) run(ctx context.Context, stdin io.Reader, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdin = b.root, stdin
	cmd.Env = os.Environ()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, io.MultiWriter(&stderr, &progress{b.log})
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(name), strings.Join(args, " "), err,
			stdout.String(), stderr.String())
	}
	return stdout.String(), nil
}

// progress indents what a command says on its way.
type progress struct{ to io.Writer }

func (p *progress) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Fprint(p.to, "    ", line); err != nil {
			return 0, err
		}
	}
	return len(text), nil
}

// BinDir is where built programs lie: kubectl and its plugin among them.
func (b *Bed) BinDir() string { return b.bin }

// IsLocal reports whether a kubeconfig is that of the local Kubernetes of that name,
// or none at all.
func IsLocal(ctx context.Context, name, kubeconfig string) bool {
	if kubeconfig == "" {
		return true
	}
	root, err := repository(ctx)
	if err != nil {
		return false
	}
	b := &Bed{Name: name, root: root, bin: filepath.Join(root, "bin"), log: io.Discard}
	out, err := b.Localkube(ctx, "kubeconfig")
	return err == nil && strings.TrimSpace(out) == kubeconfig
}

// Down removes the local Kubernetes of that name, and all that is in it.
func Down(ctx context.Context, name string, log io.Writer) error {
	root, err := repository(ctx)
	if err != nil {
		return err
	}
	b := &Bed{Name: name, root: root, bin: filepath.Join(root, "bin"), log: log}
	if err := b.buildLocalkube(ctx); err != nil {
		return err
	}
	_, err = b.Localkube(ctx, "down")
	return err
}
