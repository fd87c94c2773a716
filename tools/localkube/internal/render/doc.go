// Package render writes the configuration of every component as text or as API
// objects, from the plan of the cluster alone.
package render
