// Package policy builds the ValidatingAdmissionPolicies by which the API server
// itself, also while no operator runs, refuses what the schema of the CRD cannot
// express. They are rendered into the chart by `go test ./internal/policy
// -update`, and the same test fails when the chart is not current.
//
// It knows CEL and the table of parameters that the operator owns; it must not
// know why they are owned.
package policy
