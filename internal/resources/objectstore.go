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
func StoreFiles(s *v1alpha1.ObjectStoreSpec,
	read func(v1alpha1.SecretKeySelector) ([]byte, error)) (map[string][]byte, error) {
	config, from := storeConfig(s)
	conf, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the store's configuration: %w", err)
	}
	files := map[string][]byte{store.FileConfig: conf}
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

// storeConfig is how a store is spoken with, and from which keys of Secrets the files of its
// credentials are.
func storeConfig(s *v1alpha1.ObjectStoreSpec) (store.Config, map[string]*v1alpha1.SecretKeySelector) {
	config := store.Config{
		Endpoint: strings.TrimSuffix(s.Endpoint, "/"), Bucket: s.Bucket, Path: s.Path, Region: s.Region,
		VirtualHost:          s.ForcePathStyle != nil && !*s.ForcePathStyle,
		ServerSideEncryption: s.ServerSideEncryption, StorageClass: s.StorageClass,
		InsecureSkipVerify: s.TLS != nil && s.TLS.InsecureSkipVerify,
	}
	from := map[string]*v1alpha1.SecretKeySelector{}
	if g := s.GoogleCredentials; g != nil {
		config.Protocol, config.Ambient = store.GCS, g.GKEEnvironment
		from[store.FileGoogleKey] = g.ApplicationCredentials
	}
	if a := s.AzureCredentials; a != nil {
		config.Protocol, config.Ambient = store.Azure, a.InheritFromAzureAD
		from[store.FileAzureConnection], from[store.FileAzureAccount] = a.ConnectionString, a.StorageAccount
		from[store.FileAzureKey], from[store.FileAzureSAS] = a.StorageKey, a.StorageSasToken
	}
	if c := s.Credentials; c != nil {
		config.Ambient = c.InheritFromIAMRole
		from[store.FileAccessKeyID], from[store.FileSecretKey], from[store.FileSessionToken] = c.AccessKeyID,
			c.SecretAccessKey, c.SessionToken
	}
	return config, from
}

// StorePath is where the data of a Cluster lies in a store, for people.
func StorePath(s *v1alpha1.ObjectStoreSpec, cluster string) string {
	scheme := "s3://"
	switch {
	case s.GoogleCredentials != nil:
		scheme = "gs://"
	case s.AzureCredentials != nil:
		scheme = "azure://"
	}
	path := scheme + s.Bucket + "/"
	if s.Path != "" {
		path += s.Path + "/"
	}
	return path + cluster
}
