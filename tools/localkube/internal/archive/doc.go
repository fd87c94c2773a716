// Package archive writes the small images localkube needs, and reads from an
// image archive which images it holds and which content it has.
package archive
