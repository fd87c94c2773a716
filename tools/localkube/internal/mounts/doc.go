// Package mounts finds and removes mounts below a directory.
package mounts
