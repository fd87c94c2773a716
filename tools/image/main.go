package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const usage = `usage:
  image operator --binary PATH --tag REF --out FILE.tar [--file SRC:DST ...]
  image mysql [--tag REF] [--out FILE.tar] [--cache DIR]
  image mysql-rootfs [--release 9.7|8.0] [--cache DIR]
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// run keeps stdout for what a script wants to read and sends progress to stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	commands := map[string]func(context.Context, []string, io.Writer, io.Writer) error{
		"operator":     runOperator,
		"mysql":        runMySQL,
		"mysql-rootfs": runMySQLRootfs,
	}
	if len(args) == 0 || commands[args[0]] == nil {
		fmt.Fprint(stderr, usage)
		return flag.ErrHelp
	}
	return commands[args[0]](ctx, args[1:], stdout, stderr)
}

func runOperator(_ context.Context, args []string, stdout, stderr io.Writer) error {
	var o operatorImage
	flags := newFlags("operator", stderr)
	flags.StringVar(&o.Binary, "binary", "", "the static binary that becomes /cnmsql (required)")
	flags.StringVar(&o.Tag, "tag", "", "the image's name, for example localhost/cnmsql:dev (required)")
	flags.StringVar(&o.Out, "out", "", "the archive to write (required)")
	flags.Func("file", "SRC:DST, one more file in the image; may be repeated", o.addFile)
	if err := parse(flags, args, "binary", "tag", "out"); err != nil {
		return err
	}
	made, err := o.build()
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, made)
	return nil
}

func runMySQL(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := newFlags("mysql", stderr)
	tag := flags.String("tag", "", "the image's name (default: localhost/cnmsql/mysql:RELEASE)")
	out := flags.String("out", "", "the archive to write (default: mysql.tar in the cache)")
	cache, release := cacheFlag(flags), releaseFlag(flags)
	if err := parse(flags, args); err != nil {
		return err
	}
	tree, err := openMySQL(ctx, *cache, *release, stderr)
	if err != nil {
		return err
	}
	if *out == "" {
		*out = tree.defaultArchive()
	}
	if *tag == "" {
		*tag = "localhost/cnmsql/mysql:" + *release
	}
	made, err := tree.writeImage(*tag, *out)
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, made)
	return nil
}

func runMySQLRootfs(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := newFlags("mysql-rootfs", stderr)
	cache, release := cacheFlag(flags), releaseFlag(flags)
	if err := parse(flags, args); err != nil {
		return err
	}
	tree, err := openMySQL(ctx, *cache, *release, stderr)
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, tree.link())
	return nil
}

func cacheFlag(flags *flag.FlagSet) *string {
	return flags.String("cache", "", "where results are kept (default: $XDG_CACHE_HOME/cnmsql or ~/.cache/cnmsql)")
}

// defaultRelease is what tests, benchmarks and the demonstration run.
const defaultRelease = "9.7"

func releaseFlag(flags *flag.FlagSet) *string {
	return flags.String("release", defaultRelease, "MySQL 9.7 or 8.0")
}

func newFlags(name string, stderr io.Writer) *flag.FlagSet {
	flags := flag.NewFlagSet("image "+name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	return flags
}

func parse(flags *flag.FlagSet, args []string, required ...string) error {
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%s takes no arguments, but got %q; did a flag lose its dashes?", flags.Name(), flags.Args())
	}
	for _, name := range required {
		if flags.Lookup(name).Value.String() == "" {
			return fmt.Errorf("%s needs --%s", flags.Name(), name)
		}
	}
	return nil
}
