package instance

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"cnmsql.co/internal/layout"
)

// Options of a manager. The zero value of everything from Dirs on is what a Pod has.
type Options struct {
	Namespace, Cluster, Instance string
	PodUID, Node                 string
	ServerID                     uint32
	MemoryLimit                  int64 // bytes; the node's when nobody set a limit
	CPUs                         int
	LogLevel                     string

	Dirs Dirs
	// Mysqld is the command that runs mysqld, without its options; it is
	// looked for in the image when empty.
	Mysqld []string
	// Settings are added to my.cnf, for a server that does not run in its own
	// root file system.
	Settings map[string]string
	// Ports of this instance.
	MySQLPort, AdminPort, GroupPort, ControlPort, ProbePort, MetricsPort int
	// PodIP is where mysqld listens for replicas.
	PodIP string
	// Listen is the address to listen on; all when empty.
	Listen string
	// Peer tells under which host another instance is reached.
	Peer func(instance string) string
	// GroupLocal is the address at which this member speaks with the others, and
	// GroupAddress tells that of another.
	GroupLocal   string
	GroupAddress func(instance string) string
	// Room tells how many bytes of the data's volume are free, and how many it has; the
	// volume itself is asked when nil.
	Room func() (free, size uint64, err error)
	// Kubernetes is the cluster's state; in-cluster access is used when nil.
	Kubernetes Kubernetes
	Log        io.Writer
}

// Dirs are the directories of a Pod; see package layout.
type Dirs struct{ Data, Meta, Run, Tmp, TLS, Root, Replication, Control, App, Store, Archive string }

// OptionsFromEnv reads what the Pod tells its manager.
func OptionsFromEnv() (Options, error) {
	o := Options{
		Namespace: os.Getenv(layout.EnvNamespace),
		Cluster:   os.Getenv(layout.EnvCluster),
		Instance:  os.Getenv(layout.EnvInstance),
		PodUID:    os.Getenv(layout.EnvPodUID),
		Node:      os.Getenv(layout.EnvNode),
		PodIP:     os.Getenv(layout.EnvPodIP),
		LogLevel:  os.Getenv(layout.EnvLogLevel),
	}
	for name, value := range map[string]string{
		layout.EnvNamespace: o.Namespace, layout.EnvCluster: o.Cluster, layout.EnvInstance: o.Instance,
		layout.EnvPodUID: o.PodUID, layout.EnvPodIP: o.PodIP,
	} {
		if value == "" {
			return o,
				fmt.Errorf("the environment variable %s is not set: the manager runs in Pods that the operator makes",
					name)
		}
	}
	id, err := strconv.ParseUint(os.Getenv(layout.EnvServerID), 10, 32)
	if err != nil || id == 0 {
		return o, fmt.Errorf("the environment variable %s is %q: it must hold the instance's server_id",
			layout.EnvServerID, os.Getenv(layout.EnvServerID))
	}
	o.ServerID = uint32(id)
	o.MemoryLimit, _ = strconv.ParseInt(os.Getenv(layout.EnvMemoryLimit), 10, 64)
	o.CPUs, _ = strconv.Atoi(os.Getenv(layout.EnvCPULimit))
	return o, nil
}

func (o Options) withDefaults() Options {
	d := &o.Dirs
	d.Data, d.Meta = cmp.Or(d.Data, layout.DataDir), cmp.Or(d.Meta, layout.MetaDir)
	d.Run, d.Tmp = cmp.Or(d.Run, layout.RunDir), cmp.Or(d.Tmp, layout.TmpDir)
	d.TLS, d.Root = cmp.Or(d.TLS, layout.TLSDir), cmp.Or(d.Root, layout.RootDir)
	d.Replication, d.Control, d.App = cmp.Or(d.Replication, layout.ReplicationDir),
		cmp.Or(d.Control, layout.ControlDir), cmp.Or(d.App, layout.AppDir)
	d.Store, d.Archive = cmp.Or(d.Store, layout.StoreDir), cmp.Or(d.Archive, layout.ArchiveDir)
	o.MySQLPort, o.AdminPort = cmp.Or(o.MySQLPort, layout.MySQLPort), cmp.Or(o.AdminPort, layout.AdminPort)
	o.ControlPort = cmp.Or(o.ControlPort, layout.ControlPort)
	o.ProbePort, o.MetricsPort = cmp.Or(o.ProbePort, layout.ProbePort), cmp.Or(o.MetricsPort, layout.MetricsPort)
	if o.Peer == nil {
		o.Peer = func(instance string) string { return layout.InstanceHost(instance, o.Namespace) }
	}
	o.GroupPort = cmp.Or(o.GroupPort, layout.GroupPort)
	o.GroupLocal = cmp.Or(o.GroupLocal, net.JoinHostPort(o.PodIP, strconv.Itoa(o.GroupPort)))
	if o.GroupAddress == nil {
		o.GroupAddress = func(instance string) string {
			return net.JoinHostPort(o.Peer(instance), strconv.Itoa(o.GroupPort))
		}
	}
	if o.Room == nil {
		o.Room = func() (free, size uint64, err error) { return roomOn(o.Dirs.Data) }
	}
	if o.Log == nil {
		o.Log = os.Stdout
	}
	return o
}

func (o Options) address(port int) string { return net.JoinHostPort(o.Listen, strconv.Itoa(port)) }
func (d Dirs) socket() string             { return filepath.Join(d.Run, "mysqld.sock") }
func (d Dirs) binlogIndex() string        { return filepath.Join(d.Data, "binlog.index") }
func (d Dirs) config() string             { return filepath.Join(d.Run, "my.cnf") }
func (d Dirs) ca() string                 { return filepath.Join(d.TLS, "ca.crt") }
func (d Dirs) cert() string               { return filepath.Join(d.TLS, "tls.crt") }
func (d Dirs) key() string                { return filepath.Join(d.TLS, "tls.key") }
