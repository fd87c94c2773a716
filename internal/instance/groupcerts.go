package instance

import (
	"os"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/pki"
)

// The group's port shows and trusts what the certificate files held when mysqld joined, whatever they
// hold by now.

// certificatesOf is what the files hold now, without the key.
func certificatesOf(d Dirs) (b pki.Bundle, err error) {
	if b.CA, err = os.ReadFile(d.ca()); err == nil {
		b.Cert, err = os.ReadFile(d.cert())
	}
	return b, err
}

// noteJoining notes with which certificates mysqld is about to join. What is read before it does is no
// newer than what it reads itself: at the worst, a restart is asked for that is not needed.
func (g *membership) noteJoining() {
	b, err := certificatesOf(g.opt.Dirs)
	if err != nil {
		b = pki.Bundle{} // unknown
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.st.joinedWith, g.st.certificates = b, core.CertificatesInTime
}

// compareCertificates compares what mysqld joined with with what the files hold. Where one of them is
// not known, nothing is told.
func (g *membership) compareCertificates(now time.Time) {
	b, err := certificatesOf(g.opt.Dirs)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.st.certificates = core.CertificatesInTime
	if err != nil || len(g.st.joinedWith.Cert) == 0 {
		return
	}
	if how, err := pki.Succeeds(g.st.joinedWith, b, now); err == nil {
		g.st.certificates = toldOf[how]
	}
}

var toldOf = map[pki.Succession]core.MemberCertificates{pki.InTime: core.CertificatesInTime,
	pki.Ending: core.CertificatesEnding, pki.Overlapping: core.CertificatesFormer,
	pki.Severed: core.CertificatesSevered}
