package resources

import (
	"fmt"
	"strconv"
	"strings"

	"cnmsql.co/internal/layout"
)

// FieldManager is the owner of every field that the operator applies.
const FieldManager = "cnmsql"

// InstanceName is the name of an instance, of its Pod, claim, Service and
// ServiceAccount.
func InstanceName(cluster string, ordinal int) string {
	return fmt.Sprintf("%s-%d", cluster, ordinal)
}

// Ordinal is the number in an instance's name; false when the name is not one
// of the cluster's instances.
func Ordinal(cluster, instance string) (int, bool) {
	digits, ok := strings.CutPrefix(instance, cluster+"-")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || strconv.Itoa(n) != digits {
		return 0, false
	}
	return n, true
}

// Names derives the names of a cluster's objects from the cluster's own.
type Names string

// Service is the one that leads to a role, by what is behind the cluster's name: rw, ro, r
// or an additional one's name.
func (n Names) Service(name string) string { return string(n) + "-" + name }

// ReadWrite is the name of the Service that leads to the primary.
func (n Names) ReadWrite() string { return n.Service("rw") }

// ReadOnly is the name of the Service that leads to replicas.
func (n Names) ReadOnly() string { return n.Service("ro") }

// Read is the name of the Service that leads to every instance.
func (n Names) Read() string { return n.Service("r") }

// RootSecret is the name of the Secret with the account of root.
func (n Names) RootSecret() string { return string(n) + "-root" }

// AppSecret is the name of the Secret with the application's account.
func (n Names) AppSecret() string { return string(n) + "-app" }

// ReplicationSecret is the name of the Secret with the account of replication.
func (n Names) ReplicationSecret() string { return string(n) + "-replication" }

// ControlSecret is the name of the Secret with the account of the managers.
func (n Names) ControlSecret() string { return string(n) + "-control" }

// CASecret is the name of the Secret with the cluster's certificate authority.
func (n Names) CASecret() string { return string(n) + "-ca" }

// RecoverySecret is the name of the Secret from which a restore reads.
func (n Names) RecoverySecret() string { return string(n) + "-recovery" }

// ArchiveSecret is the name of the Secret by which instances write the archive.
func (n Names) ArchiveSecret() string { return string(n) + "-archive" }

// Lease is the name of the Lease of the primary.
func (n Names) Lease() string { return layout.PrimaryLease(string(n)) }

// DisruptionBudget is the name of the PodDisruptionBudget.
func (n Names) DisruptionBudget() string { return string(n) }

// TLSSecret is the name of the Secret with an instance's certificate.
func TLSSecret(instance string) string { return instance + "-tls" }
