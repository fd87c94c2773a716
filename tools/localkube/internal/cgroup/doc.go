// Package cgroup makes, empties and removes control groups on hosts with cgroup
// v1 (one tree for each controller) and v2 (one tree). A group is named by its
// path below the root of every tree. The groups are also how localkube finds all
// processes of a node, whoever started them.
package cgroup
