package instance

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/pki"
)

// A member tells how the certificates that it joined with compare with its files, also where the manager
// was exchanged since, and tells nothing where it does not know.
func TestAMemberComparesTheCertificatesThatItJoinedWith(t *testing.T) {
	dir := t.TempDir()
	g := &membership{opt: Options{Dirs: Dirs{TLS: dir}}}
	old, next := newAuthority(t), newAuthority(t)
	give := func(signs *authority, trust string) {
		cert, _ := signs.issue(t, pki.OrgInstance, "db-1")
		must(t, os.WriteFile(filepath.Join(dir, "ca.crt"), []byte(trust), 0o600))
		must(t, os.WriteFile(filepath.Join(dir, "tls.crt"), []byte(cert), 0o600))
	}
	says := func(g *membership, what string, expected core.MemberCertificates) {
		t.Helper()
		g.compareCertificates(time.Now())
		server := &core.Server{Group: &core.GroupView{State: core.MemberOnline}}
		if g.noteSeen(server); server.Group.Certificates != expected {
			t.Errorf("%s: it says %q, and not %q", what, server.Group.Certificates, expected)
		}
	}
	give(old, old.pem)
	says(g, "nobody knows what it joined with", core.CertificatesInTime)
	g.noteJoining()
	says(g, "it has just joined", core.CertificatesInTime)
	give(old, old.pem+next.pem)
	says(g, "both are trusted by now", core.CertificatesFormer)
	give(next, next.pem)
	says(g, "the authority was replaced", core.CertificatesSevered)

	heir := &membership{opt: g.opt}
	heir.inherit(g.left())
	says(heir, "another manager goes on", core.CertificatesSevered)
	must(t, os.Remove(filepath.Join(dir, "ca.crt")))
	says(g, "the files cannot be read", core.CertificatesInTime)
	give(next, next.pem)
	g.serverEnded(false)
	says(g, "mysqld has ended", core.CertificatesInTime)
}
