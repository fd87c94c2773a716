package resources

import (
	"encoding/json"
	"fmt"
	"strings"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
)

// StoreFiles are what a Pod needs to reach an object store, by the names that the package
// store reads them by. read gives one key of a Secret.
func StoreFiles(s *v1alpha1.ObjectStoreSpec, read func(v1alpha1.SecretKeySelector) ([]byte, error)) (map[string][]byte, error) {
	conf, err := json.MarshalIndent(store.Config{
		Endpoint: strings.TrimSuffix(s.Endpoint, "/"), Bucket: s.Bucket, Path: s.Path, Region: s.Region,
		VirtualHost: s.ForcePathStyle != nil && !*s.ForcePathStyle, Ambient: s.Credentials.InheritFromIAMRole,
		ServerSideEncryption: s.ServerSideEncryption, StorageClass: s.StorageClass,
		InsecureSkipVerify: s.TLS != nil && s.TLS.InsecureSkipVerify,
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the store's configuration: %w", err)
	}
	files := map[string][]byte{store.FileConfig: conf}
	from := map[string]*v1alpha1.SecretKeySelector{
		store.FileAccessKeyID: s.Credentials.AccessKeyID, store.FileSecretKey: s.Credentials.SecretAccessKey,
		store.FileSessionToken: s.Credentials.SessionToken,
	}
	if s.TLS != nil {
		from[store.FileCA] = s.TLS.CABundleSecret
	}
	if s.Encryption != nil {
		from[seal.FileIdentity] = &s.Encryption.Identity
	}
	for file, selector := range from {
		if selector == nil {
			continue
		}
		if files[file], err = read(*selector); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// StorePath is where the data of a Cluster lies in a store, for people.
func StorePath(s *v1alpha1.ObjectStoreSpec, cluster string) string {
	path := "s3://" + s.Bucket + "/"
	if s.Path != "" {
		path += s.Path + "/"
	}
	return path + cluster
}
