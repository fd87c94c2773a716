package operator

import (
	"crypto/x509"
	"errors"
	"io"
	"net"
	"syscall"

	"cnmsql.co/internal/tell"
)

// unheardLimit is how many bytes it may take in a sentence to say why a manager cannot be reached.
const unheardLimit = 160

// whyUnheard is why a manager cannot be reached, for people: what the innermost error says. It is the
// same as long as the reason is, so that a status which has it is not written again and again.
func whyUnheard(err error) string {
	var invalid x509.CertificateInvalidError
	var network *net.OpError
	var late net.Error
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired: // its text has the time of now
		return "x509: its certificate has expired or is not yet valid"
	case errors.As(err, &network) && network.Op == "remote error":
		return "it refuses the operator's certificate: " + network.Err.Error()
	case errors.As(err, &late) && late.Timeout():
		return "timeout"
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, syscall.ECONNRESET):
		return "the connection was closed"
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return tell.Within(unheardLimit, tell.WithoutAddresses(err.Error()))
}
