// Package network makes the machines of a cluster: network namespaces joined by
// a bridge, with the routes between Pods, Services and the host. It also breaks
// them on demand: the faults of `localkube partition`. The root namespace gets a
// bridge and routes, no firewall rule.
package network
