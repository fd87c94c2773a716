package store

import (
	"context"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// podAtAzure is the identity of the Pod's ServiceAccount (workload identity), when the Pod was
// given one, or of its node (managed identity). It is found out by the first request.
type podAtAzure struct {
	silence time.Duration

	mu    sync.Mutex
	found azcore.TokenCredential
}

// GetToken is azcore.TokenCredential's.
func (p *podAtAzure) GetToken(ctx context.Context, what policy.TokenRequestOptions) (azcore.AccessToken, error) {
	identity, err := p.identity()
	if err != nil {
		return azcore.AccessToken{},
			refuse(CredentialsWrong, "looking for the identity of the Pod: %s", told(err.Error()))
	}
	soon, cancel := context.WithTimeout(ctx, p.silence)
	defer cancel()
	token, err := identity.GetToken(soon, what)
	if ended := ctx.Err(); ended != nil {
		return token, ended
	}
	if err != nil {
		return token, refuse(CredentialsWrong, "asking Azure for the identity of the Pod: %s", told(err.Error()))
	}
	return token, nil
}

func (p *podAtAzure) identity() (azcore.TokenCredential, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil {
		return p.found, nil
	}
	// Not the store's own connections: its private authority signs for nobody else.
	options := azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}
	if os.Getenv("AZURE_FEDERATED_TOKEN_FILE") != "" {
		options.Transport = &http.Client{Timeout: p.silence}
		of := &azidentity.WorkloadIdentityCredentialOptions{ClientOptions: options}
		found, err := azidentity.NewWorkloadIdentityCredential(of)
		return p.keep(found, err)
	}
	direct := &http.Transport{IdleConnTimeout: 15 * time.Second} // no proxy knows a node's identity
	options.Transport = &http.Client{Timeout: p.silence, Transport: direct}
	of := &azidentity.ManagedIdentityCredentialOptions{ClientOptions: options}
	if id := os.Getenv("AZURE_CLIENT_ID"); id != "" {
		of.ID = azidentity.ClientID(id)
	}
	found, err := azidentity.NewManagedIdentityCredential(of)
	return p.keep(found, err)
}

// keep keeps what was found, and tries again what failed.
func (p *podAtAzure) keep(found azcore.TokenCredential, err error) (azcore.TokenCredential, error) {
	if err == nil {
		p.found = found
	}
	return found, err
}
