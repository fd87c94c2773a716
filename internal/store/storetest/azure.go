package storetest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"cnmsql.co/internal/store"
)

// AzureAccount is a storage account of a server that speaks as Azure Blob Storage.
type AzureAccount struct {
	Name, Key string
	Endpoint  string // its URL
	authority []byte
}

// Azurite starts a server that speaks as Azure Blob Storage, with an empty container and TLS,
// which is stopped when the test ends. The test is skipped unless CNMSQL_AZURE_BIN is the path
// that `go run -C tools/objectstore . build-azure` prints.
func Azurite(t testing.TB) AzureAccount {
	t.Helper()
	program := os.Getenv("CNMSQL_AZURE_BIN")
	if program == "" {
		t.Skip("set CNMSQL_AZURE_BIN to the path that `go run -C tools/objectstore . build-azure` prints, " +
			"to try this with a server that speaks as Azure's")
	}
	home := t.TempDir()
	a := AzureAccount{Name: "cnmsqltest", authority: certify(t, home),
		Key: base64.StdEncoding.EncodeToString([]byte("the key of the account of a test"))}
	alive := "/" + a.Name + "?restype=service&comp=properties&" + a.sas(t, time.Now().Add(time.Hour))
	address := serve(t, "Azure", a.authority, alive, func(address string) *exec.Cmd {
		host, port, _ := strings.Cut(address, ":")
		cmd := exec.Command(program, "--blobHost", host, "--blobPort", port, "--inMemoryPersistence", "--silent",
			"--disableTelemetry", "--skipApiVersionCheck", "--oauth", "basic",
			"--cert", filepath.Join(home, "cert.pem"), "--key", filepath.Join(home, "key.pem"))
		cmd.Dir, cmd.Env = home, append(os.Environ(), "AZURITE_ACCOUNTS="+a.Name+":"+a.Key)
		return cmd
	})
	a.Endpoint = "https://" + address + "/" + a.Name
	key, err := service.NewSharedKeyCredential(a.Name, a.Key)
	must(t, err)
	options := &service.ClientOptions{}
	options.Transport = trusting(t, a.authority)
	client, err := service.NewClientWithSharedKeyCredential(a.Endpoint, key, options)
	must(t, err)
	_, err = client.CreateContainer(t.Context(), Bucket, nil)
	must(t, err)
	return a
}

// configure gives a directory for store.Open that tells of the account.
func (a AzureAccount) configure(t testing.TB, c store.Config, files map[string]string) (dir string) {
	t.Helper()
	c.Protocol, c.Bucket, c.Path = store.Azure, Bucket, Path
	files[store.FileCA] = string(a.authority)
	return Configure(t, c, files)
}

// ByKey gives a directory for store.Open with the account's key.
func (a AzureAccount) ByKey(t testing.TB) (dir string) {
	t.Helper()
	return a.configure(t, store.Config{Endpoint: a.Endpoint},
		map[string]string{store.FileAzureAccount: a.Name + "\n", store.FileAzureKey: a.Key + "\n"})
}

// BySAS gives a directory for store.Open with a SAS token that is good until then.
func (a AzureAccount) BySAS(t testing.TB, until time.Time) (dir string) {
	t.Helper()
	return a.configure(t, store.Config{Endpoint: a.Endpoint},
		map[string]string{store.FileAzureSAS: "?" + a.sas(t, until) + "\n"})
}

// ByConnectionString gives a directory for store.Open with a connection string.
func (a AzureAccount) ByConnectionString(t testing.TB) (dir string) {
	t.Helper()
	text := fmt.Sprintf("DefaultEndpointsProtocol=https;AccountName=%s;AccountKey=%s;BlobEndpoint=%s;",
		a.Name, a.Key, a.Endpoint)
	return a.configure(t, store.Config{}, map[string]string{store.FileAzureConnection: text})
}

// ByIdentity gives a directory for store.Open with the identity that a service of Azure has. A
// server that stands in for Azure's gives it out, signed by nobody: Azurite looks at what a token
// says.
func (a AzureAccount) ByIdentity(t *testing.T) (dir string) {
	t.Helper()
	PodIdentity(t, "contract", AzureToken(t, a.Endpoint))
	return a.configure(t, store.Config{Endpoint: a.Endpoint, Ambient: true}, map[string]string{})
}

// audience is whom tokens are for.
const audience = "https://storage.azure.com"

// PodIdentity starts what gives this process the identity of that client, until the test ends.
// Microsoft's library keeps a token of a client as long as the process runs.
func PodIdentity(t *testing.T, client, token string) (server *httptest.Server) {
	t.Helper()
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		asked := r.Header.Get("X-Identity-Header") + " " + q.Get("client_id") + " " + q.Get("resource")
		if asked != "proof "+client+" "+audience {
			t.Errorf("asked for %s", r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{
			"access_token": token, "token_type": "Bearer", "resource": audience, "client_id": client,
			"expires_on": fmt.Sprint(time.Now().Add(24 * time.Hour).Unix())})
	}))
	t.Cleanup(server.Close)
	t.Setenv("IDENTITY_ENDPOINT", server.URL)
	t.Setenv("IDENTITY_HEADER", "proof")
	t.Setenv("AZURE_CLIENT_ID", client)
	return server
}

// AzureToken is a token as Microsoft Entra gives it out, but for its signature.
func AzureToken(t testing.TB, of string) string {
	t.Helper()
	part := func(v any) string {
		text, err := json.Marshal(v)
		must(t, err)
		return base64.RawURLEncoding.EncodeToString(text)
	}
	now := time.Now()
	claims := map[string]any{"aud": audience, "iss": "https://sts.windows.net/ab1f708d-50f6-404c-a006-d71b2ac7a606/",
		"sub": of, "iat": now.Unix(), "nbf": now.Add(-time.Minute).Unix(), "exp": now.Add(time.Hour).Unix()}
	return part(map[string]string{"alg": "RS256", "typ": "JWT"}) + "." + part(claims) + "." + part("nobody")
}

// sas is a SAS token for the account.
func (a AzureAccount) sas(t testing.TB, until time.Time) string {
	t.Helper()
	key, err := service.NewSharedKeyCredential(a.Name, a.Key)
	must(t, err)
	values, err := sas.AccountSignatureValues{
		Protocol: sas.ProtocolHTTPS, ExpiryTime: until.UTC(),
		Permissions:   "rwdlc",
		ResourceTypes: (&sas.AccountResourceTypes{Service: true, Container: true, Object: true}).String(),
	}.SignWithSharedKey(key)
	must(t, err)
	return values.Encode()
}
