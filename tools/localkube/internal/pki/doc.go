// Package pki makes the certificates of a cluster: one authority, one key pair
// for each component, and the key that signs service account tokens. What exists
// already and is still good is kept, so that `up` can be repeated.
package pki
