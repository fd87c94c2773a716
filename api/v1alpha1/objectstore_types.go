package v1alpha1

// ObjectStoreSpec is where backups are kept: a bucket, and how to get in. Which of the
// credentials are given says which service it is: credentials is S3 and what speaks it,
// googleCredentials is Google Cloud Storage, azureCredentials is Azure Blob Storage. The data
// of each Cluster lies below PATH/CLUSTER in the bucket.
//
// +kubebuilder:validation:XValidation:rule="[has(self.credentials), has(self.googleCredentials), has(self.azureCredentials)].filter(given, given).size() == 1",message="objectStore needs either credentials (S3 and what speaks it), googleCredentials (Google Cloud Storage) or azureCredentials (Azure Blob Storage): they say which service it is; give one of them"
// +kubebuilder:validation:XValidation:rule="has(self.azureCredentials) || !has(self.endpoint) || self.endpoint.size() == 0 || self.endpoint.matches('^https?://[^/]+/?$')",message="objectStore.endpoint must be a URL of a host, as https://s3.example.com or http://minio.store.svc:9000; put the bucket into objectStore.bucket, and the rest of the path into objectStore.path"
// +kubebuilder:validation:XValidation:rule="!has(self.credentials) || (has(self.endpoint) && self.endpoint.size() > 0) || (has(self.region) && self.region.size() > 0)",message="objectStore.endpoint or objectStore.region is needed: without an endpoint the store is Amazon's in that region; add one"
// +kubebuilder:validation:XValidation:rule="!has(self.signatureVersion) || self.signatureVersion == 's3v4'",message="objectStore.signatureVersion s3v2 is not supported: requests are signed by s3v4; remove it, or set s3v4"
// +kubebuilder:validation:XValidation:rule="!has(self.credentials) || !self.bucket.contains('_')",message="objectStore.bucket of S3 cannot have an underscore; correct it"
// +kubebuilder:validation:XValidation:rule="has(self.credentials) || !has(self.region) || self.region.size() == 0",message="objectStore.region goes with S3: Google and Azure know where the bucket is; remove it"
// +kubebuilder:validation:XValidation:rule="has(self.credentials) || !has(self.serverSideEncryption) || self.serverSideEncryption.size() == 0",message="objectStore.serverSideEncryption goes with S3: at Google the bucket's default key encrypts, at Azure the account's; set that, and remove this"
// +kubebuilder:validation:XValidation:rule="has(self.credentials) || !has(self.forcePathStyle) || self.forcePathStyle",message="objectStore.forcePathStyle goes with S3; remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.azureCredentials) || self.bucket.matches('^[a-z0-9]+(-[a-z0-9]+)*$')",message="objectStore.bucket is a container of Azure: lowercase letters and digits, with single hyphens between them; correct it"
// +kubebuilder:validation:XValidation:rule="!has(self.azureCredentials) || !has(self.storageClass) || self.storageClass.size() == 0 || self.storageClass in ['Hot', 'Cool', 'Cold']",message="objectStore.storageClass is an access tier of Azure: Hot, Cool or Cold (what is in Archive cannot be read); correct it, or remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.azureCredentials) || !has(self.endpoint) || self.endpoint.size() == 0 || self.endpoint.matches('^https?://[^/?#@]+(/[a-z0-9]+)?/?$')",message="objectStore.endpoint must be the URL of the storage account, as https://ACCOUNT.blob.core.windows.net or https://azurite.store.svc:10000/ACCOUNT; put the container into objectStore.bucket, what comes behind it into objectStore.path, and a SAS token into azureCredentials.storageSasToken"
// +kubebuilder:validation:XValidation:rule="!has(self.azureCredentials) || !has(self.azureCredentials.connectionString) || !has(self.endpoint) || self.endpoint.size() == 0",message="objectStore.endpoint stands in azureCredentials.connectionString already; remove one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.azureCredentials) || has(self.azureCredentials.connectionString) || has(self.azureCredentials.storageAccount) || (has(self.endpoint) && self.endpoint.size() > 0)",message="objectStore.azureCredentials.storageAccount or objectStore.endpoint is needed: without an endpoint the store is Azure's, of that account; add one"
// +kubebuilder:validation:XValidation:rule="!has(self.azureCredentials) || !has(self.azureCredentials.storageAccount) || has(self.azureCredentials.storageKey) || !has(self.endpoint) || self.endpoint.size() == 0",message="objectStore.azureCredentials.storageAccount is not needed beside objectStore.endpoint, unless there is a storageKey; remove one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.azureCredentials) || !has(self.azureCredentials.inheritFromAzureAD) || !self.azureCredentials.inheritFromAzureAD || !has(self.endpoint) || !self.endpoint.startsWith('http:')",message="objectStore.endpoint must be https:// with azureCredentials.inheritFromAzureAD: the token of the identity could be read on the way; correct it"
// +kubebuilder:validation:XValidation:rule="!has(self.googleCredentials) || !has(self.googleCredentials.gkeEnvironment) || !self.googleCredentials.gkeEnvironment || !has(self.endpoint) || !self.endpoint.startsWith('http:')",message="objectStore.endpoint must be https:// with googleCredentials.gkeEnvironment: the token of the identity could be read on the way; correct it"
type ObjectStoreSpec struct {
	// Bucket must exist. With Azure it is the container.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$`
	Bucket string `json:"bucket"`
	// Path within the bucket, without a slash at its ends; all of it when empty.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^([0-9A-Za-z_.=-]+(/[0-9A-Za-z_.=-]+)*)?$`
	// +optional
	Path string `json:"path,omitempty"`
	// Endpoint is the URL of the service; Google's, or Amazon's in the region, when empty.
	// With Azure it is the URL of the storage account, which may have the account as its path;
	// that of azureCredentials.storageAccount at Azure when empty.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Endpoint string `json:"endpoint,omitempty"`
	// Region of the bucket, with S3.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Region string `json:"region,omitempty"`
	// ForcePathStyle puts the bucket into the URL's path; otherwise it is put before
	// the host's name. With S3.
	// +kubebuilder:default=true
	// +optional
	ForcePathStyle *bool `json:"forcePathStyle,omitempty"`
	// SignatureVersion of requests to S3; s3v4 is the only one.
	// +kubebuilder:default=s3v4
	// +kubebuilder:validation:Enum=s3v4;s3v2
	// +optional
	SignatureVersion string `json:"signatureVersion,omitempty"`
	// ServerSideEncryption that S3 is asked for: AES256, aws:kms or aws:kms:KEY.
	// +kubebuilder:validation:Pattern=`^(AES256|aws:kms(:.+)?)?$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^aws:kms:dsse(:|$)')",message="objectStore.serverSideEncryption aws:kms:dsse (two layers of encryption) is not supported; set aws:kms, or aws:kms:KEY"
	// +kubebuilder:validation:MaxLength=512
	// +optional
	ServerSideEncryption string `json:"serverSideEncryption,omitempty"`
	// StorageClass of the objects; the bucket's default when empty. With Azure it is the
	// access tier: Hot, Cool or Cold; the account's default when empty.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	StorageClass string `json:"storageClass,omitempty"`
	// Credentials by which S3, or what speaks it, lets us in.
	// +optional
	Credentials *StoreCredentials `json:"credentials,omitempty"`
	// GoogleCredentials by which Google Cloud Storage lets us in.
	// +optional
	GoogleCredentials *GoogleCredentials `json:"googleCredentials,omitempty"`
	// AzureCredentials by which Azure Blob Storage lets us in.
	// +optional
	AzureCredentials *AzureCredentials `json:"azureCredentials,omitempty"`
	// Encryption of backups and of the archive, before they leave the Pod; none when absent.
	// +optional
	Encryption *StoreEncryption `json:"encryption,omitempty"`
	// TLS of the service; certificates of public authorities are trusted.
	// +optional
	TLS *StoreTLS `json:"tls,omitempty"`
}

// StoreCredentials are keys in Secrets of the namespace, or the identity that the Pod has
// where it runs.
//
// +kubebuilder:validation:XValidation:rule="(has(self.inheritFromIAMRole) && self.inheritFromIAMRole) != (has(self.accessKeyId) || has(self.secretAccessKey) || has(self.sessionToken))",message="objectStore.credentials must be either accessKeyId and secretAccessKey, or inheritFromIAMRole: true; give one of them"
// +kubebuilder:validation:XValidation:rule="has(self.accessKeyId) == has(self.secretAccessKey)",message="objectStore.credentials.accessKeyId and secretAccessKey belong together; give both"
type StoreCredentials struct {
	// +optional
	AccessKeyID *SecretKeySelector `json:"accessKeyId,omitempty"`
	// +optional
	SecretAccessKey *SecretKeySelector `json:"secretAccessKey,omitempty"`
	// SessionToken of temporary credentials.
	// +optional
	SessionToken *SecretKeySelector `json:"sessionToken,omitempty"`
	// InheritFromIAMRole takes the credentials from where the Pod runs.
	// +optional
	InheritFromIAMRole bool `json:"inheritFromIAMRole,omitempty"`
}

// GoogleCredentials are the key of a service account of Google, or the identity that the Pod
// has where it runs.
//
// +kubebuilder:validation:XValidation:rule="has(self.applicationCredentials) != (has(self.gkeEnvironment) && self.gkeEnvironment)",message="objectStore.googleCredentials must be either applicationCredentials, or gkeEnvironment: true; give one of them"
type GoogleCredentials struct {
	// ApplicationCredentials is the key of a Secret that holds the key of a service account,
	// in JSON as Google gives it out.
	// +optional
	ApplicationCredentials *SecretKeySelector `json:"applicationCredentials,omitempty"`
	// GKEEnvironment takes the identity from where the Pod runs: that of its ServiceAccount
	// (workload identity), or of the node.
	// +optional
	GKEEnvironment bool `json:"gkeEnvironment,omitempty"`
}

// AzureCredentials are keys in Secrets of the namespace, or the identity that the Pod has
// where it runs.
//
// +kubebuilder:validation:XValidation:rule="[has(self.connectionString), has(self.storageKey), has(self.storageSasToken), has(self.inheritFromAzureAD) && self.inheritFromAzureAD].filter(given, given).size() == 1",message="objectStore.azureCredentials must be either connectionString, storageKey, storageSasToken, or inheritFromAzureAD: true; give one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.storageKey) || has(self.storageAccount)",message="objectStore.azureCredentials.storageKey is that of an account; give storageAccount, too"
// +kubebuilder:validation:XValidation:rule="!has(self.connectionString) || !has(self.storageAccount)",message="objectStore.azureCredentials.connectionString names the account already; remove storageAccount"
type AzureCredentials struct {
	// ConnectionString as Azure gives it out: account, key or SAS token, and where it is.
	// +optional
	ConnectionString *SecretKeySelector `json:"connectionString,omitempty"`
	// StorageAccount is the key of a Secret that holds the account's name.
	// +optional
	StorageAccount *SecretKeySelector `json:"storageAccount,omitempty"`
	// StorageKey is one of the account's two access keys.
	// +optional
	StorageKey *SecretKeySelector `json:"storageKey,omitempty"`
	// StorageSasToken is a SAS token that may read, write, create, list and delete.
	// +optional
	StorageSasToken *SecretKeySelector `json:"storageSasToken,omitempty"`
	// InheritFromAzureAD takes the identity from where the Pod runs: that of its
	// ServiceAccount (workload identity), or of the node (managed identity).
	// +optional
	InheritFromAzureAD bool `json:"inheritFromAzureAD,omitempty"`
}

// StoreEncryption is the key of age (https://age-encryption.org) that backups and the archive
// are encrypted with. Without it nobody restores them: keep a copy elsewhere.
type StoreEncryption struct {
	// Identity is the key of a Secret that holds what age-keygen writes: one X25519
	// identity a line, as AGE-SECRET-KEY-1.... What is written is encrypted to the first of
	// them, and all of them read: to replace a key, put the new one before the old.
	// +kubebuilder:validation:Required
	Identity SecretKeySelector `json:"identity"`
}

// StoreTLS is whom to trust.
type StoreTLS struct {
	// CABundleSecret has the certificates of the authorities that are trusted instead
	// of the public ones.
	// +optional
	CABundleSecret *SecretKeySelector `json:"caBundleSecret,omitempty"`
	// InsecureSkipVerify trusts any certificate: whoever is between can read backups
	// and change them.
	// +optional
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
}

// SecretKeySelector is one key of a Secret of the namespace.
type SecretKeySelector struct {
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}
