// Package group decides for clusters whose instances are members of a MySQL group.
// The group itself owns membership, certification and the election of its primary;
// this package declares who should be a member, mirrors what a majority of the
// members says, and touches the membership only where a human or the spec asks for
// it. It never elects anybody, and makes a group once.
//
// It knows the vocabulary of core. It must not know SQL, Kubernetes, or the other
// topology.
package group
