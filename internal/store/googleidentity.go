package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"cloud.google.com/go/compute/metadata"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
)

// identity is whom requests come from.
type identity interface {
	// token is what a request says it with. An error is CredentialsWrong, or the context's.
	token(ctx context.Context) (string, error)
	// refused says of a token that the store did not take it.
	refused(token string)
}

// googleScope is what a token is good for: objects, and no more.
const googleScope = "https://www.googleapis.com/auth/devstorage.read_write"

// serviceAccount signs its tokens itself, with the key of a file. No other service is asked,
// so that nothing but the store has to be reached.
type serviceAccount struct {
	dir string

	mu     sync.Mutex
	key    string // of which signer was made
	signer oauth2.TokenSource
}

func (a *serviceAccount) token(context.Context) (string, error) {
	signer, err := a.current()
	if err != nil {
		return "", err
	}
	token, err := signer.Token()
	if err != nil {
		return "", because(CredentialsWrong, fmt.Errorf("signing with the key of the service account: %w", err))
	}
	return token.AccessToken, nil
}

func (a *serviceAccount) refused(string) {}

// current reads the file, which costs little beside a request: a Secret that is rotated is
// used at once.
func (a *serviceAccount) current() (oauth2.TokenSource, error) {
	key, err := readSecret(a.dir, FileGoogleKey)
	if err == nil && key == "" {
		err = errors.New("it has to be there, unless ambient is set")
	}
	if err != nil {
		return nil, because(CredentialsWrong, fmt.Errorf("reading %s in %s: %w", FileGoogleKey, a.dir, err))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.signer != nil && a.key == key {
		return a.signer, nil
	}
	signer, err := google.JWTAccessTokenSourceWithScope([]byte(key), googleScope)
	if err != nil {
		return nil, because(CredentialsWrong, fmt.Errorf("%s is not the key of a service account, in JSON as Google "+
			"gives it out: %w", FileGoogleKey, err))
	}
	a.key, a.signer = key, signer
	return signer, nil
}

// metadataIdentity is the identity of the Pod's ServiceAccount (workload identity) or of its
// node, which Google's metadata server knows.
type metadataIdentity struct {
	client  *metadata.Client
	silence time.Duration
	turn    chan struct{} // to ask and to look at what follows

	value   string
	expires time.Time
}

func newMetadataIdentity(silence time.Duration) *metadataIdentity {
	// Not the store's own connections: they may go through a proxy, and trust another authority.
	client := &http.Client{Timeout: silence, Transport: &http.Transport{IdleConnTimeout: 15 * time.Second}}
	return &metadataIdentity{client: metadata.NewClient(client), silence: silence, turn: make(chan struct{}, 1)}
}

// renewal is how long before its end a token is not used any more.
const renewal = time.Minute

func (m *metadataIdentity) token(ctx context.Context) (string, error) {
	select {
	case m.turn <- struct{}{}:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	defer func() { <-m.turn }()
	if m.value != "" && time.Now().Before(m.expires.Add(-renewal)) {
		return m.value, nil
	}
	if err := m.ask(ctx); err != nil {
		if ended := ctx.Err(); ended != nil {
			return "", ended
		}
		return "", because(CredentialsWrong,
			fmt.Errorf("asking Google's metadata server for the identity of the Pod: %w", err))
	}
	return m.value, nil
}

func (m *metadataIdentity) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, m.silence)
	defer cancel()
	query := url.Values{"scopes": {googleScope}} // whom it is sent to could do with it whatever it is good for
	text, err := m.client.GetWithContext(ctx, "instance/service-accounts/default/token?"+query.Encode())
	if err != nil {
		return err
	}
	var answer struct {
		Token   string `json:"access_token"`
		Seconds int64  `json:"expires_in"`
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Token == "" {
		return errors.New("its answer is not a token")
	}
	m.value, m.expires = answer.Token, time.Now().Add(time.Duration(answer.Seconds)*time.Second)
	return nil
}

func (m *metadataIdentity) refused(token string) {
	m.turn <- struct{}{}
	defer func() { <-m.turn }()
	if m.value == token {
		m.value = ""
	}
}
