// Package byhand is what a person does with an object store when there is no operator, and no
// Kubernetes: see what lies there, write a backup into a directory, and replay the archive on a
// mysqld that was started on it. The deciding is internal/restore's, as it is when a Cluster is
// restored. The package must not know Kubernetes.
package byhand
