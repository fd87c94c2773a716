package core

import (
	"time"

	"cnmsql.co/internal/gtid"
)

// Promotion permits one instance to be the primary in one epoch: to be writable, or, where it Follows, to
// replicate from a server outside of the cluster.
type Promotion struct {
	Epoch int64
	// Follows names the external server from which the primary replicates, read-only; "" for one that takes
	// writes. Only the promotion of a cluster's first primary begins to follow, and who is promoted after it goes
	// on with that until the cluster takes over.
	Follows      string
	Instance     string
	Proof        Proof
	Evidence     string
	From         string
	RequiredGTID gtid.Set
	RequiredAcks int
	// AcksOrder is the number of the last order about acknowledgements that was given in
	// this epoch, for OrderedAcks; 0 when none was. An order is given only after the status
	// that numbers it was written: whoever obeys none with a lower number than the last
	// goes by the status, however late an order comes.
	AcksOrder   int64
	OrderedAcks int
	GrantedAt   time.Time
	// PodUID and Node of the Pod that may become writable. Another Pod of the
	// same instance may not, unless it runs on that node and holds the lock on
	// the volume: the former may still be alive elsewhere.
	PodUID string
	Node   string
	// LosslessSince is the first epoch of which, and of all later ones up to the
	// present, every acknowledged write is known to be on RequiredAcks replicas or
	// on the instance that was promoted next, for commits never stopped to wait;
	// 0 when that is not known of the present epoch.
	LosslessSince int64
	// Size is the smallest number of instances of which the primary may believe
	// that a majority has to vouch for it.
	Size int
	// Leased tells whether the primary goes by its lease, whatever it has seen of the Cluster. It
	// does when it is promoted with the lease on, until the lease is switched off, and again only
	// by the primary's own word.
	Leased bool
	// Isolations is how many primaries in a row were replaced, up to this promotion, for
	// their replicas did not reach them; 0 again once replicas reach the present one.
	Isolations int
	// Pods are the UIDs of the Pods of the instance that may have become writable
	// in this epoch, AwaitedPod for one that may have been made and was not seen yet;
	// Ended are those of them of which the kubelet reported the end; NoWritesBelow is what
	// the manager promised. Kept here for an operator that did not hear it.
	Pods, Ended   []string
	NoWritesBelow int64
	// Awaited is the last number that was given to a Pod that is awaited, in this
	// promotion or before.
	Awaited int
	// WritableSince is when it was first seen writable; zero until then.
	WritableSince time.Time
}

// IsLossless reports whether its commits have waited for replicas, and nobody has taken that promise back; it is
// none where there is no promotion.
func (p *Promotion) IsLossless() bool { return p != nil && p.LosslessSince > 0 }

// FollowsServer reports whether the primary replicates from a server outside of the cluster, and takes no writes;
// it does not where there is no promotion.
func (p *Promotion) FollowsServer() bool { return p != nil && p.Follows != "" }

// IsOf reports whether a Pod on a node is the one that was promoted, or is on that one's node, where the lock on
// the volume tells that the former one is gone. Two nodes that are not known are no match.
func (p *Promotion) IsOf(podUID, node string) bool {
	return podUID == p.PodUID || p.Node != "" && node == p.Node
}

// MayBeOf reports whether a Pod on a node may be the one that was promoted: it IsOf it, or the promotion does not say
// which Pod it is of.
func (p *Promotion) MayBeOf(podUID, node string) bool { return p.PodUID == "" || p.IsOf(podUID, node) }

// Permits reports whether nothing that lasts forbids the promoted instance to take writes in this epoch, in a Pod on a
// node: its promise to take none below an epoch is kept on its volume, and a Pod stays where it is. The instance asks
// it of itself, and the operator of the instance's report, so that the two cannot differ.
func (p *Promotion) Permits(podUID, node string, noWritesBelow int64) bool {
	return !ForbidsWrites(noWritesBelow, p.Epoch) && p.MayBeOf(podUID, node)
}

// ForbidsWrites reports whether a promise to take no writes below an epoch, 0 for none, forbids them in another.
func ForbidsWrites(below, epoch int64) bool { return below > epoch }

// NodeToWatch is the node of the Pod that may be writable, as it was promoted, and for any other instance that
// its Pod is on, podNode; "" when it has none yet.
func (p *Promotion) NodeToWatch(instance, podNode string) string {
	if p != nil && p.Instance == instance && p.Node != "" {
		return p.Node
	}
	return podNode
}

// IsUsedBy reports whether an instance says that it is the primary by this promotion: that it takes writes, or
// follows the external server.
func (p *Promotion) IsUsedBy(instance string, r Report) bool {
	return p != nil && p.Instance == instance && r.IsPrimaryIn(p.Epoch)
}
