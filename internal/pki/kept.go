package pki

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"time"
)

// Kept is what is kept of a cluster's authority: the one that signs, and, while it changes, those before and after
// it. Whoever is trusted beside the one that signs is in Bundle.CA, too: the other fields say why.
type Kept struct {
	Bundle
	// Next is the authority that comes next, Cert and Key. It signs nothing before all trust it.
	Next Bundle
	// Lost are the certificates of authorities whose key is lost. What they have signed is kept and shown, for
	// who runs may trust nothing else.
	Lost []byte
	// Former are the certificates of authorities that signed what somebody may show yet. Nobody is given it anew.
	Former []byte
}

// Known drops from what is kept what says nothing: of Lost and Former those that are not trusted, or that sign, and
// a Next that is damaged, has ended, or signs. It sees to it that Next is trusted.
func (k Kept) Known(now time.Time) Kept {
	trusted := certificatesIn(k.CA)
	stands := func(cert *x509.Certificate) bool {
		return slices.ContainsFunc(trusted, cert.Equal) && !isIn(cert, k.Cert)
	}
	k.Lost, k.Former = only(k.Lost, stands), only(k.Former, stands)
	both := joined(k.trust(), k.Next.Cert)
	next, err := ParseCA(Bundle{CA: both, Cert: k.Next.Cert, Key: k.Next.Key})
	if err != nil || next.HasEnded(now) || isIn(next.cert, k.Cert) {
		k.Next = Bundle{}
		return k
	}
	k.CA = both
	return k
}

// Parse reads the authority that signs, as ParseCA does.
func (k Kept) Parse() (*CA, error) {
	ca, err := ParseCA(k.Bundle)
	if ca != nil {
		ca.lost = k.Lost
	}
	return ca, err
}

// trust is what leaves are delivered with: without CA, the certificate of the one that signs.
func (k Kept) trust() []byte {
	if len(k.CA) == 0 {
		return k.Cert
	}
	return k.CA
}

// Changes reports whether an authority is on its way to another.
func (k Kept) Changes() bool { return len(k.Next.Cert)+len(k.Lost)+len(k.Former) > 0 }

// Announce has another authority trusted, which signs nothing yet.
func (k Kept) Announce(next Bundle) Kept {
	k.Next = Bundle{Cert: next.Cert, Key: next.Key}
	k.CA = joined(k.trust(), next.Cert)
	return k
}

// Hand has those sign, or sign anew, whom all trust by now: Next in the place of the one that signed, or the one that
// took the place of Lost.
func (k Kept) Hand() Kept {
	if len(k.Next.Cert) > 0 {
		stay := chain(k.Next.Cert, certificatesIn(k.trust()))
		k.Former = only(k.trust(), func(cert *x509.Certificate) bool { return !slices.ContainsFunc(stay, cert.Equal) })
		k.Cert, k.Key, k.Next = k.Next.Cert, k.Next.Key, Bundle{}
	}
	k.Former, k.Lost = joined(k.Former, k.Lost), nil
	return k
}

// Forget ends the trust in Former.
func (k Kept) Forget() Kept {
	former := certificatesIn(k.Former)
	k.CA = only(k.trust(), func(cert *x509.Certificate) bool { return !slices.ContainsFunc(former, cert.Equal) })
	k.Former = nil
	return k
}

// Replace begins anew with another authority, where the keys of those that are trusted are lost.
func Replace(lost []byte, by Bundle) Kept {
	return Kept{Bundle: Bundle{CA: joined(lost, by.Cert), Cert: by.Cert, Key: by.Key}, Lost: joined(lost, nil)}
}

// Shown returns what a leaf is verified by, nil if it is of no use to whoever has it: damaged, or not verified at
// that moment by what it was delivered with.
func Shown(b Bundle, now time.Time) []byte {
	if cert, _, err := parsePair(b); err != nil || !verifies(b.CA, cert, now) {
		return nil
	}
	return b.CA
}

// StaysGood reports whether a leaf is good at that moment by one of those authorities.
func StaysGood(b Bundle, by []byte, now time.Time) bool {
	cert, _, err := parsePair(b)
	return err == nil && verifies(by, cert, now)
}

// chain is an authority with those of the certificates that have signed it, up to the root.
func chain(authority []byte, certs []*x509.Certificate) (out []*x509.Certificate) {
	out = certificatesIn(authority)
	for i := 0; i < len(out); i++ {
		for _, cert := range certs {
			if out[i].CheckSignatureFrom(cert) == nil && !slices.ContainsFunc(out, cert.Equal) {
				out = append(out, cert)
			}
		}
	}
	return out
}

// joined has the certificates of both, each once.
func joined(a, b []byte) []byte {
	had := certificatesIn(a)
	more := only(b, func(cert *x509.Certificate) bool { return !slices.ContainsFunc(had, cert.Equal) })
	if len(more) == 0 || len(a) == 0 {
		return append(bytes.Clone(a), more...)
	}
	return append(append(bytes.TrimRight(bytes.Clone(a), "\n"), '\n'), more...)
}

// only has those of the certificates that are to stay, each once; nil if none is.
func only(text []byte, stays func(*x509.Certificate) bool) (out []byte) {
	var had []*x509.Certificate
	for _, cert := range certificatesIn(text) {
		if stays(cert) && !slices.ContainsFunc(had, cert.Equal) {
			had = append(had, cert)
			out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})...)
		}
	}
	return out
}

func isIn(cert *x509.Certificate, text []byte) bool {
	return slices.ContainsFunc(certificatesIn(text), cert.Equal)
}

// certificatesIn has those of the certificates that can be read.
func certificatesIn(text []byte) (out []*x509.Certificate) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			out = append(out, cert)
		}
	}
	return out
}
