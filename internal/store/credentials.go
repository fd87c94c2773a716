package store

import (
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// credentialsOf gives what signs requests: the files of dir, or what the Pod's role gives,
// for which nothing is waited longer than silence.
func credentialsOf(c Config, dir string, silence time.Duration) (*credentials.Credentials, error) {
	if c.Ambient {
		// Not the store's own connections: its private authority signs for nobody else.
		return credentials.New(&role{credentials.IAM{Client: &http.Client{Timeout: silence}, Region: c.Region}}), nil
	}
	f := &files{dir: dir}
	if _, err := f.Retrieve(); err != nil {
		return nil, err
	}
	return credentials.New(f), nil
}

// role says of an error whose it is.
type role struct{ credentials.IAM }

// RetrieveWithCredContext asks for the credentials of the Pod's role.
func (r *role) RetrieveWithCredContext(c *credentials.CredContext) (credentials.Value, error) {
	value, err := r.IAM.RetrieveWithCredContext(c)
	if err != nil {
		err = because(CredentialsWrong, fmt.Errorf("asking for the credentials of the Pod's role: %w", err))
	}
	return value, err
}

// files are credentials that are read for every request, which costs little beside it: who
// rotates a Secret waits for nothing else.
type files struct{ dir string }

// IsExpired has minio-go ask each time.
func (f *files) IsExpired() bool { return true }

// Retrieve reads the files.
func (f *files) Retrieve() (value credentials.Value, err error) {
	err = atOnce(f.dir, func(dir string) error {
		value, err = readCredentials(dir)
		return err
	})
	if err != nil {
		return value, because(CredentialsWrong, fmt.Errorf("reading the store's credentials in %s: %w", f.dir, err))
	}
	return value, nil
}

// atOnce reads files that belong together. A Secret is replaced as a whole, by a link that is
// named ..data: it is followed once, so that all files are of the same Secret. Where the link
// led is removed a moment after: then it is followed again.
func atOnce(dir string, read func(dir string) error) (err error) {
	for range 3 {
		from := dir
		if now, err := filepath.EvalSymlinks(filepath.Join(dir, "..data")); err == nil {
			from = now
		}
		if err = read(from); err == nil {
			return nil
		}
	}
	return err
}

func readCredentials(dir string) (credentials.Value, error) {
	value := credentials.Value{SignerType: credentials.SignatureV4}
	for name, field := range map[string]*string{
		FileAccessKeyID: &value.AccessKeyID, FileSecretKey: &value.SecretAccessKey,
		FileSessionToken: &value.SessionToken} {
		var err error
		if *field, err = readSecret(dir, name); err != nil {
			return value, err
		}
	}
	if value.AccessKeyID == "" || value.SecretAccessKey == "" {
		return value, fmt.Errorf("%s and %s have to be there, unless ambient is set", FileAccessKeyID, FileSecretKey)
	}
	return value, nil
}

// RetrieveWithCredContext is Retrieve.
func (f *files) RetrieveWithCredContext(*credentials.CredContext) (credentials.Value, error) {
	return f.Retrieve()
}

// tokenInTheOpen refuses a store at which a token would be sent without TLS. A signature would be good
// for one request; a token is good for all of them, for an hour.
func tokenInTheOpen() error {
	return refuse(Misconfigured, "the endpoint is not https://: "+
		"the token of the Pod's identity could be read on the way")
}
