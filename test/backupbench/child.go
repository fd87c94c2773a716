package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"

	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/clone"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/store"
	"cnmsql.co/test/backupbench/figures"
	"cnmsql.co/test/machine"
	"cnmsql.co/test/shares"
)

// job is a backup or a restore, which a process of its own does, so that its memory is of
// nothing else.
type job struct {
	// Store is where store.Open finds it, and ID the backup.
	Store, ID string
	// Donor and CA are of a backup, Into and Server of a restore.
	Donor, CA    string
	Into, Server string
	// Uncompressed: the backup is.
	Uncompressed bool
	// Nowhere: its parts are thrown away.
	Nowhere bool
	// OnReplica: it computes where a replica does that has a core of its own.
	OnReplica bool
	// Share is the path of the control group that it computes in; "" for none.
	Share string
}

// outcome is what the process tells.
type outcome struct {
	Raw, Stored, Memory, Disk int64
	// What its parent knows.
	cpu  float64
	took time.Duration
}

func (o outcome) figure(what string) figures.Figure {
	return figures.Figure{What: what, Bytes: o.Raw, Stored: o.Stored, Memory: o.Memory, Disk: &o.Disk, CPU: o.cpu}
}

// cluster is whose backups they are.
const cluster = "bench"

// run does the job in another process.
func (j job) run(ctx context.Context) (o outcome, err error) {
	text, err := json.Marshal(j)
	if err != nil {
		return o, err
	}
	self, err := os.Executable()
	if err != nil {
		return o, err
	}
	cmd := exec.CommandContext(ctx, self, "-child", string(text))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	begun := time.Now()
	out, err := cmd.Output()
	syscall.Sync()
	o.took = time.Since(begun)
	if err != nil {
		return o, fmt.Errorf("job %s: %w", text, err)
	}
	o.cpu = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	return o, json.Unmarshal(out, &o)
}

// beChild is the other process. Its peak is read from the process itself: the resource
// usage that a parent gets also counts what the parent had when it forked.
func beChild(ctx context.Context, text string) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	if j.OnReplica {
		if err := pin(os.Getpid(), coreOfReplica); err != nil {
			return err
		}
	}
	if j.Share != "" {
		if err := shares.Enter(j.Share, os.Getpid()); err != nil {
			return err
		}
	}
	s, err := store.Open(j.Store)
	if err != nil {
		return err
	}
	if j.Nowhere {
		s = withoutParts{s}
	}
	var m *backup.Manifest
	if j.Into == "" {
		m, err = j.take(ctx, s)
	} else {
		m, err = j.restore(ctx, s)
	}
	if err != nil {
		return err
	}
	kib, err := strconv.ParseInt(strings.TrimSuffix(machine.Field("/proc/self/status", "VmHWM"), " kB"), 10, 64)
	if err != nil {
		return fmt.Errorf("reading the peak of this process's memory: %w", err)
	}
	written, err := strconv.ParseInt(machine.Field("/proc/self/io", "write_bytes"), 10, 64)
	if err != nil {
		return fmt.Errorf("reading what this process has written to disk: %w", err)
	}
	return json.NewEncoder(os.Stdout).Encode(outcome{Raw: m.RawSize, Stored: m.StoredSize, Memory: kib << 10,
		Disk: written})
}

func (j job) take(ctx context.Context, s store.Store) (*backup.Manifest, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(j.CA)) {
		return nil, errors.New("the donor's authority is no certificate")
	}
	donor := clone.Donor{Address: j.Donor, User: "backup", Password: "secret", TLS: &tls.Config{RootCAs: roots,
		MinVersion: tls.VersionTLS12}}
	conf := mysql.NewConfig()
	conf.Net, conf.Addr, conf.User, conf.Passwd, conf.TLS = "tcp", j.Donor, donor.User,
		donor.Password, donor.TLS.Clone()
	conf.TLS.ServerName = "127.0.0.1"
	connector, err := mysql.NewConnector(conf)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	return backup.Take(ctx, donor, s, backup.Options{
		Identity: backup.Identity{Cluster: cluster, Namespace: "bench", UID: "bench"}, ID: j.ID,
		Instance: "bench-1", Epoch: 1, Uncompressed: j.Uncompressed,
		Executed: func(ctx context.Context) (gtid.Set, error) {
			var text string
			if err := db.QueryRowContext(ctx, "SELECT @@gtid_executed").Scan(&text); err != nil {
				return gtid.Set{}, err
			}
			return gtid.Parse(text)
		},
	})
}

func (j job) restore(ctx context.Context, s store.Store) (*backup.Manifest, error) {
	m, err := backup.Read(ctx, s, cluster, j.ID)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(j.Into)
	if err != nil {
		return nil, err
	}
	return m, errors.Join(backup.Restore(ctx, s, m, root, backup.RestoreOptions{Server: j.Server}), root.Close())
}
