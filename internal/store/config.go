package store

// Config is where a store is, and how to speak with it. It is a file of its own beside
// those that hold the credentials, see the constants, so that all of it can be mounted into
// a Pod.
type Config struct {
	// Protocol is how the service is spoken with: "" is S3, GCS is Google Cloud Storage, Azure
	// is Azure Blob Storage.
	Protocol string `json:"protocol,omitempty"`
	// Endpoint is the URL of the service, https:// or http://; "" is Google's, or Amazon's for
	// the region. With Azure it is the account's, which may have a path, and "" is what the
	// files of the credentials name. file:///DIR is a directory, in which Bucket is one.
	Endpoint string `json:"endpoint,omitempty"`
	// Bucket is the container, with Azure.
	Bucket string `json:"bucket"`
	// Path is put before every key, with a slash between them.
	Path string `json:"path,omitempty"`
	// Region "" is asked of Amazon, and us-east-1 elsewhere.
	Region string `json:"region,omitempty"`
	// VirtualHost puts the bucket into the host's name, not into the path. Without an
	// Endpoint, it is put where Amazon wants it.
	VirtualHost bool `json:"virtualHost,omitempty"`
	// Ambient takes the credentials from where the Pod runs (a role of its
	// ServiceAccount, of its node), not from files.
	Ambient bool `json:"ambient,omitempty"`
	// ServerSideEncryption is AES256, aws:kms or aws:kms:KEY; "" is what the bucket does.
	ServerSideEncryption string `json:"serverSideEncryption,omitempty"`
	// StorageClass is the access tier, with Azure.
	StorageClass string `json:"storageClass,omitempty"`
	// InsecureSkipVerify trusts any certificate.
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
}

// Protocols of services that do not speak S3.
const (
	GCS   = "gcs"   // Google Cloud Storage
	Azure = "azure" // Azure Blob Storage
)

// Files of a directory that Open reads.
const (
	FileConfig       = "store.json"
	FileAccessKeyID  = "access-key-id"
	FileSecretKey    = "secret-access-key"
	FileSessionToken = "session-token" // may be missing
	FileGoogleKey    = "google-credentials.json"
	// Azure's: a connection string; or the account's key and name, or a SAS token, beside which
	// the name may be missing when there is an Endpoint.
	FileAzureConnection = "azure-connection-string"
	FileAzureAccount    = "azure-storage-account"
	FileAzureKey        = "azure-storage-key"
	FileAzureSAS        = "azure-sas-token"
	FileCA              = "ca.crt" // may be missing: the system's authorities are trusted then
)
