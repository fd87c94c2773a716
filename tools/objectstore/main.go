// Command objectstore builds an object store for tests, and prints where its binary is:
//
//	go run -C tools/objectstore . build        an S3 server: versitygw, which keeps objects as files
//	go run -C tools/objectstore . build-gcs    Google Cloud Storage: fake-gcs-server
//	go run -C tools/objectstore . build-azure  Azure Blob Storage: Azurite, which needs npm and Node.js
//
// Their dependencies are many, so they have this module for themselves, and the binaries are
// kept outside of any checkout.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// server is a tool of go.mod, which has its version.
type server struct{ name, module, program string }

var servers = map[string]server{
	"build":     {"versitygw", "github.com/versity/versitygw", "github.com/versity/versitygw/cmd/versitygw"},
	"build-gcs": {"fake-gcs-server", "github.com/fsouza/fake-gcs-server", "github.com/fsouza/fake-gcs-server"},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	path, err := provide(ctx, os.Args[1:])
	if errors.Is(err, errUsage) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "objectstore:", err)
		os.Exit(1)
	}
	fmt.Println(path)
}

var errUsage = errors.New("usage: objectstore build | build-gcs | build-azure")

// provide gives the path of the program that is asked for.
func provide(ctx context.Context, args []string) (string, error) {
	if len(args) != 1 {
		return "", errUsage
	}
	if args[0] == "build-azure" {
		return installAzurite(ctx)
	}
	asked, known := servers[args[0]]
	if !known {
		return "", errUsage
	}
	return build(ctx, asked)
}

// build gives the path of the server's binary, which it builds unless it is there.
func build(ctx context.Context, s server) (string, error) {
	version, err := run(ctx, "list", "-m", "-f", "{{.Version}}", s.module)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache(), "objectstore", s.name+"-"+version)
	path := filepath.Join(dir, s.name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making the cache: %w", err)
	}
	unlock, err := lock(filepath.Join(dir, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	// Its name comes last, so that a build which was interrupted is not taken for a whole one.
	if _, err := run(ctx, "build", "-trimpath", "-ldflags", "-s -w", "-o", path+".new", s.program); err != nil {
		return "", err
	}
	return path, os.Rename(path+".new", path)
}

func cache() string {
	if dir, err := os.UserCacheDir(); err == nil {
		return dir
	}
	return "/var/cache"
}

// run runs the go command in this module, for a static binary, and gives what it prints.
func run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// lock has one of several builds wait for the other.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking the cache: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return func() { _ = f.Close() }, nil
}
