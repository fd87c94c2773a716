// Command image makes container images from files, without Docker and without a registry.
//
// It knows three things: how the operator's image is made from one static binary ("operator"),
// how a small MySQL image is made from Debian's packages ("mysql"), and where that image's files
// lie as a directory that tests can chroot into ("mysql-rootfs"). Images are written as
// docker-archive files, which `ctr -n k8s.io images import`, `docker load` and `podman load`
// accept.
//
// It must not know the name of any registry or mirror: Debian's packages come from where the
// machine's own apt gets them. It knows nothing of clusters either; who loads the archives into
// which node is somebody else's business.
package main
