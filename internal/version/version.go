// Package version tells which cnmsql this is.
package version

// Version is set when a release is built.
var Version = "dev"
