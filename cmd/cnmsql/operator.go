package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"cnmsql.co/internal/cores"
	"cnmsql.co/internal/logpipe"
	"cnmsql.co/internal/operator"
)

func operatorCommand() *cobra.Command {
	var o operator.Options
	var level string
	cmd := &cobra.Command{Use: "operator", Short: "Run the controllers", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.OperatorImage == "" {
				return errors.New("--operator-image is empty: name the image that this binary runs from, so that " +
					"instances can copy it")
			}
			var l slog.Level
			if err := l.UnmarshalText([]byte(level)); err != nil {
				return fmt.Errorf("--log-level: %w", err)
			}
			log, lines := operatorLog(os.Stderr, l)
			defer func() { _ = lines.Close(logPatience) }()
			o.DroppedLines = lines.Dropped
			boundMemory(log)
			conf, err := ctrl.GetConfig()
			if err != nil {
				return err
			}
			ctx, stop := untilTerminated(cmd.Context())
			defer stop()
			cores.RestOnOne()
			err = operator.Run(ctx, conf, o)
			if errors.Is(err, operator.ErrBeginAnew) {
				return beginAnew(ctx, err, log, lines)
			}
			return err
		}}
	f := cmd.Flags()
	f.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8080", "address of the metrics, 0 for none")
	f.StringVar(&o.ProbeAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	f.BoolVar(&o.LeaderElect, "leader-elect", false, "let one of several operators work at a time")
	f.StringVar(&o.Address, "address", os.Getenv("POD_IP"), "address at which other operators reach this one's probes")
	f.StringVar(&o.Namespace, "namespace", os.Getenv("POD_NAMESPACE"), "namespace of the operator's own lease")
	f.StringVar(&o.OperatorImage, "operator-image", "", "image that this binary runs from; instances copy the "+
		"manager from it")
	f.StringVar(&o.DefaultImage, "default-image", "mysql:9.7", "image with mysqld for Clusters that name none")
	f.IntVar(&o.Workers, "workers", 16, "number of clusters that are looked at side by side")
	f.StringVar(&level, "log-level", "info", "debug, info, warn or error")
	return cmd
}

// memoryShare is how much of its container's memory a heap may take.
const memoryShare = 0.9

// boundMemory has garbage collected more often as the container's limit comes nearer: what many
// Clusters, or many parts of an archive, need is far less than what lies about of it otherwise.
// GOMEMLIMIT overrides it.
func boundMemory(log *slog.Logger) {
	_, err := memlimit.Set(memlimit.WithRatio(memoryShare))
	if err != nil && !errors.Is(err, memlimit.ErrNoLimit) && !errors.Is(err, memlimit.ErrNoCgroup) {
		log.Warn("cannot read the memory limit of the container; the heap is not bounded", "error", err.Error())
	}
}

// beginAnew replaces the process by itself: nothing that it was doing goes on, and
// nothing that it knew is left. A container that exits instead is held back by the
// kubelet for longer each time, when it may be needed most.
func beginAnew(ctx context.Context, why error, log *slog.Logger, lines *logpipe.Writer) error {
	log.Warn("the operator starts again in this container", "error", why.Error())
	_ = lines.Flush(logPatience)
	if ctx.Err() != nil {
		return nil // it was told to end meanwhile, which whoever starts again would never hear
	}
	exec := func(path string) error { return syscall.Exec(path, os.Args, os.Environ()) }
	// By its path it keeps its name; by the link it would be called exe, and nobody would find it.
	if path, err := os.Executable(); err == nil {
		_ = exec(path)
	}
	return errors.Join(why, exec("/proc/self/exe"))
}
