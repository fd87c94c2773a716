package resources

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

// storeCase is an object store, with the files that a Pod gets for it, and where its data lies.
type storeCase struct {
	spec  v1alpha1.ObjectStoreSpec
	files []string
	path  string
}

// inSecret is a key of the Secret that the cases have.
func inSecret(name string) *v1alpha1.SecretKeySelector {
	return &v1alpha1.SecretKeySelector{Name: "s", Key: name}
}

func storeCases() map[string]storeCase {
	return map[string]storeCase{
		"S3": {v1alpha1.ObjectStoreSpec{Bucket: "bucket", Path: "a/b", Region: "eu-central-1",
			Credentials: &v1alpha1.StoreCredentials{AccessKeyID: inSecret("id"), SecretAccessKey: inSecret("secret")}},
			[]string{store.FileConfig, store.FileAccessKeyID, store.FileSecretKey}, "s3://bucket/a/b/db"},
		"a role": {v1alpha1.ObjectStoreSpec{Bucket: "bucket", Region: "eu-central-1",
			Credentials: &v1alpha1.StoreCredentials{InheritFromIAMRole: true}},
			[]string{store.FileConfig}, "s3://bucket/db"},
		"Google": {v1alpha1.ObjectStoreSpec{Bucket: "bucket", Path: "a", StorageClass: "NEARLINE",
			GoogleCredentials: &v1alpha1.GoogleCredentials{ApplicationCredentials: inSecret("google")}},
			[]string{store.FileConfig, store.FileGoogleKey}, "gs://bucket/a/db"},
		"workload identity": {v1alpha1.ObjectStoreSpec{Bucket: "bucket",
			GoogleCredentials: &v1alpha1.GoogleCredentials{GKEEnvironment: true}},
			[]string{store.FileConfig}, "gs://bucket/db"},
		"Azure": {v1alpha1.ObjectStoreSpec{Bucket: "bucket", Path: "a", StorageClass: "Cool",
			AzureCredentials: &v1alpha1.AzureCredentials{StorageAccount: inSecret("account"),
				StorageKey: inSecret("azure")}},
			[]string{store.FileConfig, store.FileAzureAccount, store.FileAzureKey}, "azure://bucket/a/db"},
		"a SAS token": {v1alpha1.ObjectStoreSpec{Bucket: "bucket", Endpoint: "https://azurite.store.svc:10000/account/",
			AzureCredentials: &v1alpha1.AzureCredentials{StorageSasToken: inSecret("sas")}},
			[]string{store.FileConfig, store.FileAzureSAS}, "azure://bucket/db"},
		"a connection string": {v1alpha1.ObjectStoreSpec{Bucket: "bucket",
			AzureCredentials: &v1alpha1.AzureCredentials{ConnectionString: inSecret("connection")}},
			[]string{store.FileConfig, store.FileAzureConnection}, "azure://bucket/db"},
		"an identity of Azure": {v1alpha1.ObjectStoreSpec{Bucket: "bucket",
			AzureCredentials: &v1alpha1.AzureCredentials{InheritFromAzureAD: true,
				StorageAccount: inSecret("account")}},
			[]string{store.FileConfig, store.FileAzureAccount}, "azure://bucket/db"},
	}
}

// TestAStoreOpensWithTheFilesThatAPodGets: what the operator writes, the package store reads.
func TestAStoreOpensWithTheFilesThatAPodGets(t *testing.T) {
	secrets := map[string]string{"id": "the id", "secret": "the secret", "google": storetest.GoogleKey(t, "me@test"),
		"account": "account", "azure": "a2V5", "sas": "sv=1&sig=x", "connection": "AccountName=account;AccountKey=a2V5"}
	for name, c := range storeCases() {
		t.Run(name, func(t *testing.T) {
			files, err := StoreFiles(&c.spec, func(s v1alpha1.SecretKeySelector) ([]byte, error) {
				return []byte(secrets[s.Key]), nil
			})
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			wanted := map[string]bool{}
			for _, file := range c.files {
				wanted[file] = true
			}
			got := map[string]bool{}
			for file, text := range files {
				got[file] = true
				if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(wanted, got); diff != "" {
				t.Errorf("files: wanted -, got +:\n%s", diff)
			}
			if _, err := store.Open(dir); err != nil {
				t.Error(err)
			}
			if path := StorePath(&c.spec, "db"); path != c.path {
				t.Errorf("it lies at %s, wanted %s", path, c.path)
			}
		})
	}
}
