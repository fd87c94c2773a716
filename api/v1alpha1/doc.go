// Package v1alpha1 is the API of cnmsql: the Cluster resource of the group
// mysql.cnmsql.co, its defaults, and the rules by which the API server itself
// accepts or refuses a manifest. It knows nothing of how a Cluster is carried
// out.
//
// +kubebuilder:object:generate=true
// +groupName=mysql.cnmsql.co
package v1alpha1
