// Package registry remembers which clusters exist on this machine: name, index,
// directory and number of nodes. An index is taken before anything else is made
// and given back after everything else is gone, so that two clusters never share
// addresses or link names, and a half-made cluster can always be found again.
package registry
