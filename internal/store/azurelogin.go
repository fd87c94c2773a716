package store

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"cnmsql.co/internal/version"
)

// azureLogin makes clients of the container out of the files of the credentials, which are
// read for every request: who rotates a Secret waits for nothing else.
type azureLogin struct {
	dir     string
	config  Config
	account *url.URL // is that of Open: with other credentials it stays the same store
	options container.ClientOptions
	pod     azcore.TokenCredential // of ambient credentials

	mu     sync.Mutex
	known  azureSecrets // of which client was made
	client *container.Client
}

// newAzure opens a container of Azure Blob Storage; account is what azureAccount gives.
func newAzure(l limits, c Config, account *url.URL, dir string) (*azureStore, error) {
	wire := &transport{config: c, dir: dir, silence: l.silence}
	if _, err := wire.current(); err != nil {
		return nil, err
	}
	login := &azureLogin{dir: dir, config: c, account: account}
	login.options.Transport = azureWire{wire}
	login.options.Retry.MaxRetries = -1 // it is tried again here
	login.options.Telemetry.ApplicationID = "cnmsql/" + version.Version
	login.pod = &podAtAzure{silence: l.silence}
	if _, err := login.container(); err != nil {
		return nil, err
	}
	return &azureStore{login: login, place: account.JoinPath(c.Bucket).String(), config: c, limits: l}, nil
}

// azureWire follows no redirection, and does not put URLs into errors: a SAS token is a part
// of them.
type azureWire struct{ *transport }

func (w azureWire) Do(req *http.Request) (*http.Response, error) { return w.RoundTrip(req) }

// azureSecrets are the files of the credentials.
type azureSecrets struct{ connection, account, key, sas string }

func readAzureSecrets(dir string) (s azureSecrets, err error) {
	err = atOnce(dir, func(dir string) error {
		for name, field := range map[string]*string{FileAzureConnection: &s.connection, FileAzureAccount: &s.account,
			FileAzureKey: &s.key, FileAzureSAS: &s.sas} {
			if *field, err = readSecret(dir, name); err != nil {
				return err
			}
		}
		s.sas = strings.TrimPrefix(s.sas, "?")
		return s.check()
	})
	return s, err
}

var azureAccountName = regexp.MustCompile(`^[a-z0-9]{3,24}$`)

// check refuses what cannot be, without telling it.
func (s azureSecrets) check() error {
	if s.account != "" && !azureAccountName.MatchString(s.account) {
		return fmt.Errorf("%s is not the name of a storage account", FileAzureAccount)
	}
	if s.sas == "" {
		return nil
	}
	if values, err := url.ParseQuery(s.sas); err != nil || values.Get("sig") == "" {
		return fmt.Errorf("%s is no SAS token: it has no sig", FileAzureSAS)
	}
	return nil
}

// isComplete returns an error unless there is exactly one of connection string, key and SAS, and
// the account beside a key. With ambient credentials there must be none of the three: the files
// tell the account at most.
func (s azureSecrets) isComplete(ambient bool) error {
	given := 0
	for _, it := range []string{s.connection, s.key, s.sas} {
		if it != "" {
			given++
		}
	}
	switch {
	case ambient && given > 0:
		return errors.New("ambient is set, and there are credentials in files beside it")
	case !ambient && given != 1:
		return fmt.Errorf("one of %s, %s and %s has to be there, unless ambient is set",
			FileAzureConnection, FileAzureKey, FileAzureSAS)
	case s.key != "" && s.account == "":
		return fmt.Errorf("%s has to be there beside %s", FileAzureAccount, FileAzureKey)
	}
	return nil
}

// url is that of the account: the configuration's, or what the files tell.
func (s azureSecrets) url(endpoint string) (*url.URL, error) {
	address := endpoint
	switch {
	case s.connection != "" && endpoint != "":
		return nil, refuse(Misconfigured, "%s tells where the account is: remove the endpoint", FileAzureConnection)
	case s.connection != "":
		client, err := container.NewClientFromConnectionString(s.connection, "any", nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", FileAzureConnection, err)
		}
		address = strings.TrimSuffix(withoutQuery(client.URL()), "any")
	case endpoint == "" && s.account == "":
		return nil, fmt.Errorf("where the account is has to be told: by the endpoint, or by %s", FileAzureAccount)
	case endpoint == "":
		address = "https://" + s.account + ".blob.core.windows.net"
	}
	u, err := url.Parse(strings.TrimSuffix(address, "/"))
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil {
		return nil, errors.New("where the account is, is not a URL") // which may hold a password, as err does
	}
	return u, nil
}

func withoutQuery(address string) string {
	address, _, _ = strings.Cut(address, "?")
	return address
}

// azureAccount gives the files of the credentials, and the URL of the account that they or the
// configuration name.
func azureAccount(c Config, dir string) (secrets azureSecrets, account *url.URL, err error) {
	if secrets, err = readAzureSecrets(dir); err == nil {
		err = secrets.isComplete(c.Ambient)
	}
	if err == nil {
		account, err = secrets.url(c.Endpoint)
	}
	var known *Reason
	switch {
	case errors.As(err, &known):
		return secrets, nil, err
	case err != nil:
		return secrets, nil, because(CredentialsWrong, fmt.Errorf("the store's credentials in %s: %w", dir, err))
	case c.Ambient && account.Scheme != "https":
		return secrets, nil, tokenInTheOpen()
	}
	return secrets, account, nil
}

// container is a client with the credentials of now.
func (l *azureLogin) container() (*container.Client, error) {
	secrets, account, err := azureAccount(l.config, l.dir)
	if err != nil {
		return nil, err
	}
	if *account != *l.account {
		return nil, refuse(Misconfigured, "the credentials in %s are of %s now, and were of %s: it is another store",
			l.dir, account, l.account)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.client != nil && l.known == secrets {
		return l.client, nil
	}
	client, err := l.login(secrets)
	if err != nil {
		return nil, because(CredentialsWrong, fmt.Errorf("the store's credentials in %s: %w", l.dir, err))
	}
	l.known, l.client = secrets, client
	return client, nil
}

func (l *azureLogin) login(s azureSecrets) (*container.Client, error) {
	address := l.account.JoinPath(l.config.Bucket).String()
	switch {
	case l.config.Ambient:
		return container.NewClient(address, l.pod, &l.options)
	case s.connection != "":
		return container.NewClientFromConnectionString(s.connection, l.config.Bucket, &l.options)
	case s.key != "":
		key, err := container.NewSharedKeyCredential(s.account, s.key)
		if err != nil {
			return nil, fmt.Errorf("%s is not a key: %w", FileAzureKey, err)
		}
		return container.NewClientWithSharedKeyCredential(address, key, &l.options)
	}
	return container.NewClientWithNoCredential(address+"?"+s.sas, &l.options)
}

var azureContainer = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// checkAzure refuses what Azure would, and a tier from which nothing can be read.
func (c Config) checkAzure() error {
	if len(c.Bucket) < 3 || len(c.Bucket) > 63 || !azureContainer.MatchString(c.Bucket) {
		return refuse(Misconfigured, "bucket %q is not the name of a container", c.Bucket)
	}
	switch c.StorageClass {
	case "", "Hot", "Cool", "Cold":
		return nil
	}
	return refuse(Misconfigured, "storageClass %q is none of Hot, Cool and Cold", c.StorageClass)
}
