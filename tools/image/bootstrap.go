package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// extractPackages unpacks the recipe's packages and what they depend on into dir, which must not exist yet. Nothing is configured:
// no maintainer script runs, so neither a shell nor dpkg is needed in the tree.
func extractPackages(ctx context.Context, r recipe, dir string, progress io.Writer) error {
	if err := ensureMmdebstrap(ctx, progress); err != nil {
		return err
	}
	_, err := mmdebstrap(r, dir, debianMirror(os.DirFS("/"))).run(ctx, progress)
	return err
}

func mmdebstrap(r recipe, dir, mirror string) command {
	argv := []string{
		"mmdebstrap", "--quiet", "--variant=extract",
		// A mirror's Release file can be past its date, and sid is only ever as old as the mirror.
		`--aptopt=Acquire::Check-Valid-Until "false"`,
	}
	for _, p := range r.Packages {
		argv = append(argv, "--include="+p)
	}
	argv = append(argv, r.Suite, dir)
	if mirror != "" {
		argv = append(argv, mirror)
	}
	return command{
		Argv: argv,
		Advice: "see whether `apt-get update` works on this machine; the mirror is the one in its apt sources. If a package is gone " +
			"from " + r.Suite + ", its new name belongs into the recipe (tools/image/recipe.go)",
	}
}

func ensureMmdebstrap(ctx context.Context, progress io.Writer) error {
	if _, err := exec.LookPath("mmdebstrap"); err == nil {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("neither mmdebstrap nor apt-get is here; the MySQL image is made from Debian packages, so make it on Debian " +
			"or use any official MySQL image instead")
	}
	install := command{
		Argv: []string{"apt-get", "install", "--yes", "--no-install-recommends", "mmdebstrap", "debian-archive-keyring"},
		Env:  []string{"DEBIAN_FRONTEND=noninteractive"},
		Advice: "run `apt-get update` and try again; or install mmdebstrap by hand. If another apt-get holds the lock, wait until " +
			"it has ended",
	}
	_, err := install.run(ctx, progress)
	return err
}
