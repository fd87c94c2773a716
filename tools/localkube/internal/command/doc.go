// Package command runs the programs localkube is made of (ip, iptables, ctr,
// apt-get, go) and turns a failure into an error a person can act on: the
// command line, its output and what to do. It knows no program in particular.
package command
