package instance

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/mysql"
)

// spaceNeeded is the least free space with which mysqld is started.
const spaceNeeded = 16 << 20

// namedError is an error with a name and what to do about it.
type namedError struct {
	core.Problem
	again time.Duration
}

func (h *namedError) Error() string { return h.String() }

// setProblem remembers why mysqld could not be started, and when to try again;
// a changed Cluster is tried at once.
func (m *manager) setProblem(err error) {
	p := &agent.Problem{Problem: core.Problem{Reason: core.InstanceStartFailed, Message: err.Error()}}
	again := 5 * time.Second
	var h *namedError
	var user *mysql.UserStatementError
	switch {
	case errors.As(err, &h):
		p.Problem, again = h.Problem, h.again
	case errors.As(err, &user):
		p.Reason, again = core.InstancePostInitSQLFailed, time.Minute
	}
	m.update(func(s *state) {
		p.RetryAt = time.Now().Add(again)
		if s.cluster.view != nil {
			p.Generation = s.cluster.view.Generation
		}
		s.mysqld.problem = p
	})
}

// startServer starts mysqld read-only. What hinders it is a problem that is
// reported, not a failed action that is repeated.
func (m *manager) startServer(ctx context.Context) error {
	cluster := m.object()
	if cluster == nil {
		return errors.New("starting mysqld: the Cluster is not known yet")
	}
	err := m.provenance.noteStart(ctx, !isGroup(cluster) && !durabilityOf(cluster).KeepsRelayLogs())
	if err == nil {
		err = m.prepareConfig(ctx, cluster)
	}
	if ctx.Err() != nil {
		return ctx.Err() // an order came in between: that says nothing about mysqld
	}
	if err == nil {
		err = m.launch(m.keeper.restoring(cluster)...)
	}
	if err != nil {
		m.log.Error("mysqld cannot be started", "error", err)
		m.setProblem(err)
		return nil
	}
	m.update(func(s *state) { s.mysqld.problem = nil })
	if f := m.facts(); !f.Permitted() {
		return m.forgetTail() // recovery commits what was left of it
	}
	return nil
}

// prepareConfig looks at all that could keep mysqld from starting.
func (m *manager) prepareConfig(ctx context.Context, c *v1alpha1.Cluster) error {
	if m.launcher.server().missing != nil {
		if err := m.launcher.lookForServer(ctx); err != nil {
			return err
		}
	}
	if err := m.spaceLeft(); err != nil {
		return err
	}
	if err := m.writeConfig(c, mysql.ToServe); err != nil {
		return err
	}
	return m.validate(ctx)
}

func (m *manager) spaceLeft() error {
	var fs unix.Statfs_t
	dir := filepath.Dir(m.opt.Dirs.Data)
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("asking how much space is left on %s: %w", dir, err)
	}
	if free := int64(fs.Bavail) * fs.Bsize; free < spaceNeeded {
		return diskFull(fmt.Sprintf("%d bytes are left", free))
	}
	return nil
}

func diskFull(detail string) error {
	return &namedError{core.Problem{Reason: core.InstanceDiskFull,
		Message: "the volume is full (" + detail + "): raise spec.storage.size, or free space on it; mysqld is " +
			"started when there is space"}, 5 * time.Second}
}

// config is what my.cnf is made from.
func (m *manager) config(c *v1alpha1.Cluster) mysql.Config {
	d, durability := m.opt.Dirs, durabilityOf(c)
	counted := agent.Cluster{Durability: durability, Members: c.Status.Members}
	expire, size := binlogsOf(c)
	return mysql.Config{
		MaxBinlogSize: size, BinlogExpire: expire, HoldsBinlogs: c.Spec.Backup.Archives(),
		Version: m.launcher.version(), ServerID: m.opt.ServerID,
		Host: m.opt.Peer(m.opt.Instance), Port: m.opt.MySQLPort,
		AdminAddress: m.opt.PodIP, AdminPort: m.opt.AdminPort,
		DataDir: d.Data, TmpDir: d.Tmp, Socket: d.socket(), PIDFile: filepath.Join(d.Run, "mysqld.pid"),
		CAFile: d.ca(), CertFile: d.cert(), KeyFile: d.key(),
		BinlogFormat: c.Spec.MySQL.BinlogFormat, SemiSyncReplica: counted.Acknowledges(m.opt.Instance),
		Lossless: durability.IsOnReplicas(), KeepsRelayLogs: durability.KeepsRelayLogs(),
		RelayLogsLost: m.record.cached().DropsRelayLogs(!isGroup(c) && durability.IsOnReplicas()),
		Group:         m.topology().groupConfig(c),
		Memory:        memoryFor(c, m.opt.MemoryLimit), CPUs: m.opt.CPUs,
		User: c.Spec.MySQL.Parameters, Extra: m.opt.Settings,
	}
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

func (m *manager) writeConfig(c *v1alpha1.Cluster, p mysql.Purpose) error {
	parameters := c.Spec.MySQL.Parameters
	if bad := mysql.Misnamed(parameters); len(bad) > 0 {
		return &namedError{core.Problem{Reason: core.InstanceConfigRefused,
			Message: fmt.Sprintf("spec.mysql.parameters: not the name of a parameter: %q; correct "+
				"spec.mysql.parameters", bad)}, time.Minute}
	}
	if left := mysql.Refused(parameters); len(left) > 0 {
		m.log.Warn("parameters of spec.mysql.parameters are the operator's, and left out", "parameters", left)
	}
	text := mysql.Render(m.config(c), p)
	if err := writeDurably(m.opt.Dirs.config(), []byte(text)); err != nil {
		return fmt.Errorf("writing mysqld's configuration: %w", err)
	}
	return nil
}

// validate asks mysqld whether it takes its configuration, once for each text. One
// that was killed meanwhile, or took too long, has not refused it.
func (m *manager) validate(ctx context.Context) error {
	text, err := os.ReadFile(m.opt.Dirs.config())
	if err != nil {
		return err
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(text))
	if get(m, func(s *state) bool { return s.mysqld.checked == sum }) {
		return nil
	}
	out, err := run(ctx, 30*time.Second, m.launcher.server().command, "--defaults-file="+m.opt.Dirs.config(),
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
	m.update(func(s *state) { s.mysqld.checked = sum })
	return nil
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
