package pki

import (
	"bytes"
	"crypto/x509"
	"time"
)

// Succession is how a certificate that is shown, with what is trusted beside it, stands to the one that
// came after it.
type Succession int

const (
	// InTime says that whoever has the one is trusted by who has the other, and for long.
	InTime Succession = iota
	// Ending says so too, but the one that is shown ends soon, and its successor later.
	Ending
	// Overlapping says that they trust each other, and are of other authorities.
	Overlapping
	// Severed says that one of them does not trust the other.
	Severed
)

// soon is how long before its end a certificate that is shown should be replaced by its successor.
const soon = 30 * 24 * time.Hour

// Succeeds compares what is shown with its successor; of both, CA and Cert count. It is an error when a
// certificate cannot be read.
func Succeeds(shown, next Bundle, now time.Time) (Succession, error) {
	former, err := Parse(shown.Cert)
	if err != nil {
		return InTime, err
	}
	latter, err := Parse(next.Cert)
	if err != nil {
		return InTime, err
	}
	ofAnother := !bytes.Equal(former.RawIssuer, latter.RawIssuer) ||
		!bytes.Equal(former.AuthorityKeyId, latter.AuthorityKeyId) || !bytes.Equal(shown.CA, next.CA)
	switch {
	case !verifies(next.CA, former, now) || !verifies(shown.CA, latter, now):
		return Severed, nil
	case ofAnother:
		return Overlapping, nil
	case former.NotAfter.Before(now.Add(soon)) && former.NotAfter.Before(latter.NotAfter):
		return Ending, nil
	default:
		return InTime, nil
	}
}

func verifies(trust []byte, leaf *x509.Certificate, now time.Time) bool {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(trust)
	_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	return err == nil
}
