// Package pki makes and judges the certificates of a cluster: one certificate
// authority per Cluster, one leaf per instance, one for the operator. It works
// on PEM bytes and a given time. It must not know where they are kept.
package pki
