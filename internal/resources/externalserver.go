package resources

import (
	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/declared"
	"cnmsql.co/internal/recovery"
)

// ServerOf is a running server of spec.externalClusters, as an instance is told of it.
func ServerOf(e *v1alpha1.ExternalCluster) *recovery.Server {
	is := func(name string) string { return string(e.ConnectionParameters[name]) }
	return &recovery.Server{Name: e.Name, Host: is("host"), Port: declared.ServerPort(e), User: is("user"),
		AnyName: is("sslmode") == "verify-ca"}
}

// ServerFiles are what an instance needs to log in to a running server, by the names that the package
// recovery gives them. read gives one key of a Secret.
func ServerFiles(e *v1alpha1.ExternalCluster,
	read func(v1alpha1.SecretKeySelector) ([]byte, error)) (map[string][]byte, error) {
	files := map[string][]byte{}
	for file, selector := range map[string]*v1alpha1.SecretKeySelector{recovery.FilePassword: e.Password,
		recovery.FileAuthority: e.SSLRootCert, recovery.FileCertificate: e.SSLCert, recovery.FileKey: e.SSLKey} {
		if selector == nil {
			continue
		}
		var err error
		if files[file], err = read(*selector); err != nil {
			return nil, err
		}
	}
	return files, nil
}
