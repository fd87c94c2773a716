package instance

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/declared"
	"cnmsql.co/internal/mysql"
)

// configurer writes what mysqld is started with, and has mysqld try whether it takes that. It keeps
// what was tried.
type configurer struct {
	opt      Options
	log      *slog.Logger
	launcher *launcher
	by       configured

	mu sync.Mutex
	// valid is a digest of the configuration that mysqld has found valid.
	valid   string
	attempt attempt
}

// configured is what a configurer asks of its manager.
type configured interface {
	// cached is what the volume remembers of relay logs that were not flushed.
	cached() agent.Cached
	// groupConfig is nil where there is no group.
	groupConfig(c *v1alpha1.Cluster) *mysql.GroupConfig
}

func newConfigurer(m *manager, l *launcher) *configurer {
	return &configurer{opt: m.opt, log: m.log, launcher: l, by: m}
}

// checked is a digest of the configuration that mysqld has found valid.
func (c *configurer) checked() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.valid
}

func (c *configurer) setChecked(sum string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.valid = sum
}

// prepareConfig looks at all that could keep mysqld from starting.
func (c *configurer) prepareConfig(ctx context.Context, of *v1alpha1.Cluster) error {
	if c.launcher.server().missing != nil {
		if err := c.launcher.lookForServer(ctx); err != nil {
			return err
		}
	}
	if err := c.spaceLeft(); err != nil {
		return err
	}
	err := c.writeConfig(of, mysql.ToServe)
	if err == nil {
		err = c.validate(ctx)
	}
	if err != nil {
		return c.prepareAccepted(ctx, of, err)
	}
	c.setAttempt(attempt{isMade: true, with: chosenBy(of)})
	return nil
}

func (c *configurer) spaceLeft() error {
	var fs unix.Statfs_t
	dir := filepath.Dir(c.opt.Dirs.Data)
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("asking how much space is left on %s: %w", dir, err)
	}
	if free := int64(fs.Bavail) * fs.Bsize; free < agent.SpaceNeeded {
		return diskFull(fmt.Sprintf("%d bytes are left", free))
	}
	return nil
}

// config is what my.cnf is made from.
func (c *configurer) config(of *v1alpha1.Cluster) mysql.Config {
	d, durability, acks := c.opt.Dirs, declared.DataDurability(&of.Spec), countedBy(of)
	expire, size := binlogsOf(of)
	return mysql.Config{
		MaxBinlogSize: size, BinlogExpire: expire, HoldsBinlogs: of.Spec.Backup.Archives(),
		Version: c.launcher.version(), ServerID: c.opt.ServerID,
		Host: c.opt.Peer(c.opt.Instance), Port: c.opt.MySQLPort,
		AdminAddress: c.opt.PodIP, AdminPort: c.opt.AdminPort,
		DataDir: d.Data, TmpDir: d.Tmp, Socket: d.socket(), PIDFile: filepath.Join(d.Run, "mysqld.pid"),
		CAFile: d.ca(), CertFile: d.cert(), KeyFile: d.key(),
		BinlogFormat: of.Spec.MySQL.BinlogFormat, SemiSyncReplica: acks.Acknowledges(c.opt.Instance),
		Lossless: durability.IsOnReplicas(), KeepsRelayLogs: acks.KeepsRelayLogs(),
		RelayLogsLost: c.by.cached().DropsRelayLogs(durability.IsOnReplicas()),
		Topology:      topologyOf(of), Group: c.by.groupConfig(of),
		Memory: memoryFor(of, c.opt.MemoryLimit), CPUs: c.opt.CPUs,
		User: of.Spec.MySQL.Parameters, Extra: c.opt.Settings,
	}
}

func (c *configurer) writeConfig(of *v1alpha1.Cluster, p mysql.Purpose) error {
	parameters := of.Spec.MySQL.Parameters
	if bad := mysql.Misnamed(parameters); len(bad) > 0 {
		return &namedError{core.Problem{Reason: core.InstanceConfigRefused,
			Message: fmt.Sprintf("spec.mysql.parameters: not the name of a parameter: %q; correct "+
				"spec.mysql.parameters", bad)}, time.Minute}
	}
	if left := mysql.Refused(parameters); len(left) > 0 {
		c.log.Warn("spec.mysql.parameters sets parameters that only the operator sets; they are ignored: remove them",
			"parameters", left)
	}
	text := mysql.Render(c.config(of), p)
	if err := writeDurably(c.opt.Dirs.config(), []byte(text)); err != nil {
		return fmt.Errorf("writing mysqld's configuration: %w", err)
	}
	return nil
}

// validate asks mysqld whether it takes its configuration, once for each text. One
// that was killed meanwhile, or took too long, has not refused it.
func (c *configurer) validate(ctx context.Context) error {
	text, err := os.ReadFile(c.opt.Dirs.config())
	if err != nil {
		return err
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(text))
	if c.checked() == sum {
		return nil
	}
	out, err := run(ctx, 30*time.Second, c.launcher.server().command, "--defaults-file="+c.opt.Dirs.config(),
		"--validate-config")
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended) && ended.Exited():
		return &namedError{core.Problem{Reason: core.InstanceConfigRefused,
			Message: "mysqld refuses its configuration: " + errorsOf(out) + "; correct spec.mysql.parameters"},
			time.Minute}
	case err != nil:
		return fmt.Errorf("asking mysqld whether it takes its configuration: %w: %s", err, out)
	}
	c.setChecked(sum)
	return nil
}

// binlogsOf is what spec.backup.continuousArchiving says of binary logs.
func binlogsOf(c *v1alpha1.Cluster) (expire *int64, size int64) {
	if !c.Spec.Backup.Archives() {
		return nil, 0
	}
	a := c.Spec.Backup.ContinuousArchiving
	if a.MaxBinlogSizeMB != nil {
		size = int64(*a.MaxBinlogSizeMB) << 20
	}
	return a.BinlogExpireSeconds, size
}

// errorsOf picks the errors out of what mysqld printed.
func errorsOf(out string) string {
	var found []string
	for _, line := range strings.Split(out, "\n") {
		if p := errorLine.FindStringSubmatch(line); p != nil && p[2] == "ERROR" && p[3] != "MY-010119" {
			found = append(found, strings.TrimSuffix(p[4], "."))
		}
	}
	if len(found) == 0 {
		return out
	}
	return strings.Join(found, "; ")
}

// What a configurer asks of its manager, besides.

func (m *manager) groupConfig(c *v1alpha1.Cluster) *mysql.GroupConfig {
	return m.topology().groupConfig(c)
}
