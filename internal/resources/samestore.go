package resources

import (
	"strings"

	"cnmsql.co/api/v1alpha1"
)

// IsSameStore reports whether two objects of the API name the same place: what lies below a name in the
// one lies there in the other, too. How it is reached does not matter, nor by which Secrets; but at Azure
// each account has buckets of its own, and Secrets name it.
func IsSameStore(a, b *v1alpha1.ObjectStoreSpec) bool {
	return a != nil && b != nil && a.Bucket == b.Bucket && a.Path == b.Path && a.Region == b.Region &&
		strings.TrimSuffix(a.Endpoint, "/") == strings.TrimSuffix(b.Endpoint, "/") && ownerOf(a) == ownerOf(b)
}

// owner is whose a bucket is.
type owner struct {
	google, azure       bool
	connection, account v1alpha1.SecretKeySelector
}

func ownerOf(s *v1alpha1.ObjectStoreSpec) owner {
	of := owner{google: s.GoogleCredentials != nil, azure: s.AzureCredentials != nil}
	if of.azure && s.AzureCredentials.ConnectionString != nil {
		of.connection = *s.AzureCredentials.ConnectionString
	}
	if of.azure && s.AzureCredentials.StorageAccount != nil {
		of.account = *s.AzureCredentials.StorageAccount
	}
	return of
}
