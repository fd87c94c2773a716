package operator

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/pki"
	"cnmsql.co/internal/resources"
)

func TestAUsersSecretIsReadOnceAMinuteAndAfterEachChangeOfTheSpec(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mine"},
		Data: map[string][]byte{"username": []byte("app"), "password": []byte("one")}}
	cached, live := newAPI(t), newAPI(t, secret)
	p, c := newPrerequisites(cached, live), aCluster()
	c.Spec.Bootstrap =
		&v1alpha1.BootstrapSpec{InitDB: &v1alpha1.InitDBSpec{Secret: &v1alpha1.LocalObjectReference{Name: "mine"}}}
	read := func(want int) {
		t.Helper()
		live.gets = 0
		for range 3 {
			s, err := p.appSecret(t.Context(), nil, new([]core.Problem))(c, nil, nil)
			must(t, err)
			if string(s.Data["password"]) != "one" {
				t.Errorf("the password is %q", s.Data["password"])
			}
		}
		if live.gets != want {
			t.Errorf("the Secret was read %d times, want %d", live.gets, want)
		}
	}
	read(1)
	c.Generation++
	read(1)
	known := p.users[clusterKey]
	known.read = known.read.Add(-userSecretLife)
	p.users[clusterKey] = known
	read(1)
	c.UID = "another"
	read(1)
	p.forget(clusterKey)
	read(1)
}

func TestASecretThatIsBeingMendedIsReadEachTime(t *testing.T) {
	live := newAPI(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mine"}})
	p, c := newPrerequisites(newAPI(t), live), aCluster()
	c.Spec.Bootstrap =
		&v1alpha1.BootstrapSpec{InitDB: &v1alpha1.InitDBSpec{Secret: &v1alpha1.LocalObjectReference{Name: "mine"}}}
	for range 3 {
		_, err := p.appSecret(t.Context(), nil, new([]core.Problem))(c, nil, nil)
		var h *userError
		if !errors.As(err, &h) || h.Reason != "SecretIncomplete" {
			t.Errorf("an empty Secret: %v", err)
		}
	}
	if live.gets != 3 {
		t.Errorf("it was read %d times", live.gets)
	}
}

// A bootstrap is used once: who deletes its Secret afterwards must not keep Pods and certificates
// of the cluster from being renewed.
func TestASecretThatWasUsedMayGo(t *testing.T) {
	p, c := newPrerequisites(newAPI(t), newAPI(t)), aCluster()
	c.Spec.Bootstrap =
		&v1alpha1.BootstrapSpec{InitDB: &v1alpha1.InitDBSpec{Secret: &v1alpha1.LocalObjectReference{Name: "mine"}}}
	c.Status.EstablishedAt = nil
	existing := map[string][]byte{"username": []byte("app"), "password": []byte("one")}
	if _, err := p.appSecret(t.Context(), nil, new([]core.Problem))(c, existing, nil); err == nil {
		t.Error("a Secret that was not used yet is missing, and nothing is said")
	}
	c.Status.EstablishedAt = new(metav1.NowMicro())
	var asides []core.Problem
	for range 2 { // it is remembered for a while
		asides = nil
		_, err := p.appSecret(t.Context(), nil, &asides)(c, existing, nil)
		must(t, err)
	}
	s, err := p.appSecret(t.Context(), nil, &asides)(c, existing, nil)
	must(t, err)
	if string(s.Data["username"]) != "app" || string(s.Data["password"]) != "one" {
		t.Errorf("the account is %s now", s.Data["username"])
	}
	if len(asides) != 1 || asides[0].Reason != core.ProblemSecretMissing ||
		!strings.Contains(asides[0].Message, "the Secret mine, which") {
		t.Errorf("it says %v", asides)
	}
}

// An authority that is damaged signs nothing, and accounts go on. What clients verify servers by stays in their
// Secret.
func TestAPasswordIsFollowedWithoutAnAuthority(t *testing.T) {
	c, a := aCluster(), newAPI(t)
	p, name := newPrerequisites(a, a), resources.Names("c").AppSecret()
	keep := func() *corev1.Secret {
		t.Helper()
		var asides []core.Problem
		must(t, p.attempts.all(t.Context(), c, p.accounts(nil, &asides), &asides))
		return secretOf(t, a, c, name)
	}
	keepAccounts(t, p, c)
	before := secretOf(t, a, c, name)
	trusted := string(before.Data[resources.KeyCA])
	before.Data[resources.KeyPassword] = []byte("another")
	must(t, a.Update(t.Context(), before))
	now := keep()
	if !strings.HasPrefix(string(now.Data["uri"]), "mysql://app:another@") || trusted == "" ||
		string(now.Data[resources.KeyCA]) != trusted {
		t.Errorf("the application reads %s, and trusts %q", now.Data["uri"], now.Data[resources.KeyCA])
	}
	must(t, a.Delete(t.Context(), now))
	if again := keep(); len(again.Data[resources.KeyPassword]) == 0 || again.Data[resources.KeyCA] != nil {
		t.Errorf("made again it is %v", again.Data)
	}
}

// TestASlipInASecretThatWasUsedIsToldAndHindersNothing: the account stays, and all else is kept.
func TestASlipInASecretThatWasUsedIsToldAndHindersNothing(t *testing.T) {
	c := aCluster()
	c.Spec.Bootstrap =
		&v1alpha1.BootstrapSpec{InitDB: &v1alpha1.InitDBSpec{Secret: &v1alpha1.LocalObjectReference{Name: "mine"}}}
	c.Status.EstablishedAt = new(metav1.NowMicro())
	mine := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mine"},
		Data: map[string][]byte{"username": []byte("app"), "password": []byte("one")}}
	a := newAPI(t, mine)
	p, is := newPrerequisites(a, a), &corev1.Secret{}
	for _, step := range []struct{ username, password, uri, told string }{
		{"app", "one", "mysql://app:one@", ""},
		{"shop", "two", "mysql://app:one@", "the username in the Secret mine is another by now"},
		{"app", "\n", "mysql://app:one@", "nothing but the end of a line"},
		{"app", strings.Repeat("x", 257), "mysql://app:one@", "has 257 bytes"},
		{"app", "two\n", "mysql://app:two@", ""},
	} {
		mine.Data = map[string][]byte{"username": []byte(step.username), "password": []byte(step.password)}
		must(t, a.Update(t.Context(), mine))
		delete(p.users, clusterKey)
		_, asides, err := p.ensure(t.Context(), c)
		must(t, err)
		said := ""
		for _, aside := range asides {
			said += aside.String()
		}
		if (said == "") != (step.told == "") || !strings.Contains(said, step.told) {
			t.Errorf("%q, %q: it says %q", step.username, step.password, said)
		}
		key := client.ObjectKey{Namespace: "ns", Name: resources.Names("c").AppSecret()}
		must(t, a.Get(t.Context(), key, is))
		if got := string(is.Data["uri"]); !strings.HasPrefix(got, step.uri) {
			t.Errorf("%q, %q: the application reads %s", step.username, step.password, got)
		}
	}
}

// TestAPasswordOfNoUseIsToldAndLeft: it is somebody's slip in a Secret of the operator's. Nobody can replicate
// with more than 32 bytes.
func TestAPasswordOfNoUseIsToldAndLeft(t *testing.T) {
	names, long := resources.Names("c"), strings.Repeat("x", 300)
	for _, step := range []struct{ secret, password, told string }{
		{names.ReplicationSecret(), long[:32], ""},
		{names.ReplicationSecret(), long[:33], "has 33 bytes, and nobody can replicate with more than 32"},
		{names.ControlSecret(), long[:256], ""},
		{names.ControlSecret(), long[:257], "has 257 bytes, and a server lets nobody in with more than 256"},
		{names.AppSecret(), long[:257], "has 257 bytes"},
		{names.RootSecret(), "hunter2\nhunter3", "has several lines"},
		{names.ReplicationSecret(), "hunter2\tx", "another control character"},
		{names.AppSecret(), "hunter2\xff", "no UTF-8"},
	} {
		c, a := aCluster(), newAPI(t)
		p := newPrerequisites(a, a)
		keepAccounts(t, p, c)
		s := secretOf(t, a, c, step.secret)
		s.Data[resources.KeyPassword] = []byte(step.password + "\n")
		must(t, a.Update(t.Context(), s))
		var asides []core.Problem
		must(t, p.attempts.all(t.Context(), c, p.accounts(anAuthority(t), &asides), &asides))
		said := ""
		for _, aside := range asides {
			said += aside.String()
		}
		if (said == "") != (step.told == "") || !strings.Contains(said, step.told) ||
			strings.Contains(said, "hunter2") || said != "" && !strings.Contains(said, step.secret) {
			t.Errorf("%s of %q: it says %q", step.secret, step.password, said)
		}
		if now := secretOf(t, a, c, s.Name); string(now.Data[resources.KeyPassword]) != step.password {
			t.Errorf("%s of %q: it is another by now", step.secret, step.password)
		}
	}
}

// TestWhatIsNotWantedAnyMoreGoes: the budget that holds up a drain, and credentials.
func TestWhatIsNotWantedAnyMoreGoes(t *testing.T) {
	c := aCluster()
	c.Spec.Backup = &v1alpha1.BackupDefaults{ObjectStore: someStore,
		ContinuousArchiving: &v1alpha1.ContinuousArchivingSpec{Enabled: true}}
	a := newAPI(t, storeSecret())
	p, names := newPrerequisites(a, a), resources.Names("c")
	there := func() (budget, archive bool) {
		key := client.ObjectKey{Namespace: "ns", Name: names.DisruptionBudget()}
		budget = a.Get(t.Context(), key, &policyv1.PodDisruptionBudget{}) == nil
		key.Name = names.ArchiveSecret()
		return budget, a.Get(t.Context(), key, &corev1.Secret{}) == nil
	}
	keep := func() {
		t.Helper()
		must(t, p.budget(t.Context(), c))
		must(t, p.archive(t.Context(), c, new([]core.Problem)))
	}
	keep()
	if budget, archive := there(); !budget || !archive {
		t.Fatalf("not made: %t, %t", budget, archive)
	}
	c.Spec.EnablePDB, c.Spec.Backup.ContinuousArchiving.Enabled = new(false), false
	keep()
	if budget, archive := there(); budget || archive {
		t.Errorf("still there: budget %t, credentials %t", budget, archive)
	}
	keep()
}

// TestAnAuthorityThatEndsIsTold, while something can be done, and when it has ended nothing is issued.
func TestAnAuthorityThatEndsIsTold(t *testing.T) {
	const day = 24 * time.Hour
	for left, told := range map[time.Duration]core.Reason{400 * day: "", 300 * day: core.ProblemAuthorityEnds,
		-time.Hour: core.ProblemAuthorityBroken} {
		bundle, err := pki.NewCA("c", time.Now().Add(left-3650*day))
		must(t, err)
		c := aCluster()
		a := newAPI(t, resources.CASecret(c, bundle))
		p, said := newPrerequisites(a, a), core.Reason("")
		ca, asides, err := p.ensure(t.Context(), c)
		var h *userError
		switch {
		case errors.As(err, &h):
			said = h.Reason
		case len(asides) > 0:
			said = asides[0].Reason
		}
		if said != told || (ca == nil) != (told == core.ProblemAuthorityBroken) {
			t.Errorf("%s before its end it says %q (%v), want %q", left, said, err, told)
		}
	}
}

// TestNobodyIsToldToDeleteAnAuthority holds that no message asks for it: an authority that is deleted is put back.
func TestNobodyIsToldToDeleteAnAuthority(t *testing.T) {
	c := aCluster()
	for _, text := range []string{authorityEnds(c, anAuthority(t)).Message, lostAuthority(c).Error(),
		brokenAuthority(c, "is damaged").Error()} {
		if strings.Contains(text, "delete") || !strings.Contains(text, "kubectl annotate cluster c cnmsql.cnmsql.co/") {
			t.Error(text)
		}
	}
}

// TestACertificateIsGoodForTheNamesOfTheUser, also one that was issued before they were wished for.
func TestACertificateIsGoodForTheNamesOfTheUser(t *testing.T) {
	a, c := newAPI(t), aCluster()
	p := newPrerequisites(a, a)
	ca, err := p.authority(t.Context(), c, new([]core.Problem))
	must(t, err)
	must(t, p.leaf(t.Context(), c, ca, "c-1"))
	c.Spec.Certificates = &v1alpha1.CertificatesSpec{ServerAltDNSNames: []string{"db.example.com", "*.svc.corp.local"}}
	must(t, p.leaf(t.Context(), c, ca, "c-1")) // the address alone is a reason to issue another
	c.Spec.Certificates.ServerAltDNSNames = append(c.Spec.Certificates.ServerAltDNSNames, "192.0.2.7")
	must(t, p.leaf(t.Context(), c, ca, "c-1"))
	var s corev1.Secret
	must(t, a.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: resources.TLSSecret("c-1")}, &s))
	block, _ := pem.Decode(s.Data[corev1.TLSCertKey])
	cert, err := x509.ParseCertificate(block.Bytes)
	must(t, err)
	for _, name := range []string{"db.example.com", "x.svc.corp.local", "c-1.ns.svc", "192.0.2.7", "127.0.0.1"} {
		must(t, cert.VerifyHostname(name))
	}
	if slices.Contains(cert.DNSNames, "192.0.2.7") {
		t.Error("an address is among the names of DNS")
	}
}

// TestWhatIsInheritedReachesWhatWasMadeBefore, and takes no label of the operator's.
func TestWhatIsInheritedReachesWhatWasMadeBefore(t *testing.T) {
	c, pod := aCluster(), aPod("c-1", "first", "n1")
	a := newAPI(t, pod)
	p := newPrerequisites(a, a)
	c.Spec.InheritedMetadata = &v1alpha1.InheritedMetadata{Annotations: map[string]string{"policy": "strict"},
		Labels: map[string]v1alpha1.LabelValue{"team": "shop", v1alpha1.LabelCluster: "other",
			"mysql.cnmsql.co/role": "primary"}}
	for _, value := range []string{"strict", "lax"} {
		c.Spec.InheritedMetadata.Annotations["policy"] = value
		must(t, p.pod(t.Context(), c, "c-1"))
		var is corev1.Pod
		must(t, a.Get(t.Context(), client.ObjectKeyFromObject(pod), &is))
		if is.Labels["team"] != "shop" || is.Annotations["policy"] != value ||
			is.Labels[v1alpha1.LabelCluster] != "c" || is.Labels["mysql.cnmsql.co/role"] != "" {
			t.Errorf("%v, %v", is.Labels, is.Annotations)
		}
		version := is.ResourceVersion
		must(t, p.pod(t.Context(), c, "c-1"))
		if must(t, a.Get(t.Context(), client.ObjectKeyFromObject(pod), &is)); is.ResourceVersion != version {
			t.Error("what is as it should be was written again")
		}
	}
}
