package resources

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/layout"
)

func TestAPasswordThatExistsIsKeptAndWhatIsMissingIsMade(t *testing.T) {
	c := cluster(t, "minimal")
	s := must[*corev1.Secret](t)(ControlSecret(c, map[string][]byte{KeyPassword: []byte("kept"),
		layout.KeyBackupPassword: []byte("kept, too")}, bytes.NewReader(nil)))
	if got := string(s.Data[KeyPassword]); got != "kept" {
		t.Errorf("the password became %q", got)
	}
	if got := string(s.Data[KeyUsername]); got != ControlAccount {
		t.Errorf("the username is %q", got)
	}
	s = must[*corev1.Secret](t)(ControlSecret(c, map[string][]byte{KeyUsername: []byte(ControlAccount),
		KeyPassword: nil}, chance()))
	if len(s.Data[KeyPassword]) != passwordLength {
		t.Errorf("an empty password was not recreated: %q", s.Data[KeyPassword])
	}
}

// TestTheAccountOfBackupsIsKeptBesideThatOfTheManagers, and made where the Secret is of an earlier release.
func TestTheAccountOfBackupsIsKeptBesideThatOfTheManagers(t *testing.T) {
	c := cluster(t, "minimal")
	before := map[string][]byte{KeyUsername: []byte(ControlAccount), KeyPassword: []byte("kept")}
	if !LacksBackupAccount(before) {
		t.Error("a Secret of an earlier release has it")
	}
	s := must[*corev1.Secret](t)(ControlSecret(c, before, chance()))
	made := string(s.Data[layout.KeyBackupPassword])
	if string(s.Data[KeyPassword]) != "kept" || string(s.Data[layout.KeyBackupUsername]) != BackupAccount ||
		len(made) != passwordLength || LacksBackupAccount(s.Data) {
		t.Errorf("it is %q", s.Data)
	}
	again := must[*corev1.Secret](t)(ControlSecret(c, s.Data, bytes.NewReader(nil)))
	if string(again.Data[layout.KeyBackupPassword]) != made {
		t.Error("its password was not kept")
	}
	again.Data[layout.KeyBackupPassword] = bytes.Repeat([]byte("x"), layout.PasswordMost+1)
	if why := UnusablePassword(c, again.Name, again.Data); !strings.Contains(why, "the key backup-password in the "+
		"Secret "+again.Name+" has 257 bytes") {
		t.Errorf("one that nobody is let in with: %q", why)
	}
}

func TestURIsFollowThePassword(t *testing.T) {
	existing := map[string][]byte{KeyPassword: []byte("p@ss/word"), "uri": []byte("mysql://stale"),
		"dbname": []byte("stale")}
	s := must[*corev1.Secret](t)(AppSecret(cluster(t, "minimal"), existing, nil, []byte("the authority"), chance()))
	for key, want := range map[string]string{
		"uri":      "mysql://app:p%40ss%2Fword@db-rw.shop.svc:3306/app",
		"jdbc-uri": "jdbc:mysql://db-rw.shop.svc:3306/app?password=p%40ss%2Fword&sslMode=REQUIRED&user=app",
		"ca.crt":   "the authority",
		"dbname":   "app",
		"host":     "db-rw.shop.svc",
		"port":     "3306",
	} {
		if got := string(s.Data[key]); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
}

func TestTheUsersSecretDecidesWhoTheApplicationIs(t *testing.T) {
	c := cluster(t, "minimal")
	c.Spec.Bootstrap =
		&v1alpha1.BootstrapSpec{InitDB: &v1alpha1.InitDBSpec{Secret: &v1alpha1.LocalObjectReference{Name: "mine"}}}
	user := map[string][]byte{KeyUsername: []byte("me"), KeyPassword: []byte("mine")}
	s := must[*corev1.Secret](t)(AppSecret(c, map[string][]byte{KeyPassword: []byte("made before")},
		user, nil, chance()))
	if got := string(s.Data[KeyUsername]) + ":" + string(s.Data[KeyPassword]); got != "me:mine" {
		t.Errorf("the application is %s", got)
	}
}

func TestAUsersSecretOfNoUseIsRefusedWithWhatToDo(t *testing.T) {
	for name, r := range map[string]struct {
		owner string
		user  map[string][]byte
		want  string
	}{
		"no password": {"", map[string][]byte{KeyUsername: []byte("me")},
			`the Secret mine, which spec.bootstrap.initdb.secret names, has no key "password"`},
		"no username": {"", map[string][]byte{KeyPassword: []byte("x")}, `has no key "username"`},
		"empty":       {"", map[string][]byte{}, `has no key "username"`},
		"another owner": {"you", map[string][]byte{KeyUsername: []byte("me"), KeyPassword: []byte("x")},
			`is "you", but the username in the Secret mine is another; make them the same`},
		"root": {"", map[string][]byte{KeyUsername: []byte("root"), KeyPassword: []byte("x")},
			"choose another name"},
		"a line's end is no password": {"", map[string][]byte{KeyUsername: []byte("me"), KeyPassword: []byte("\r\n")},
			`has no key "password", or nothing but the end of a line`},
		"root and a line's end": {"", map[string][]byte{KeyUsername: []byte("root\n"), KeyPassword: []byte("x")},
			"choose another name"},
		"several lines": {"", map[string][]byte{KeyUsername: []byte("me"), KeyPassword: []byte("x\ny\n")},
			"more than one line"},
		"an end for C": {"", map[string][]byte{KeyUsername: []byte("me"), KeyPassword: []byte("x\x00y")},
			"another control character"},
		"too long": {"", map[string][]byte{KeyUsername: []byte(strings.Repeat("x", 33)), KeyPassword: []byte("x")},
			"choose another name"},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, "minimal")
			c.Spec.Bootstrap = &v1alpha1.BootstrapSpec{InitDB: &v1alpha1.InitDBSpec{Owner: r.owner,
				Secret: &v1alpha1.LocalObjectReference{Name: "mine"}}}
			_, err := AppSecret(c, nil, r.user, nil, chance())
			if err == nil || !strings.Contains(err.Error(), r.want) {
				t.Errorf("got %v, want %s", err, r.want)
			}
		})
	}
}

// `echo secret | base64` is how many a Secret is made. The instances read it without the line's end.
func TestTheEndOfALineIsNoPartOfAnAccount(t *testing.T) {
	c := cluster(t, "minimal")
	s := must[*corev1.Secret](t)(RootSecret(c, map[string][]byte{KeyPassword: []byte("kept\n")}, chance()))
	if got := string(s.Data[KeyPassword]); got != "kept" {
		t.Errorf("the password of root is %q", got)
	}
	s = must[*corev1.Secret](t)(RootSecret(c, map[string][]byte{KeyPassword: []byte("\n")}, chance()))
	if got := string(s.Data[KeyPassword]); len(got) != passwordLength {
		t.Errorf("an account without a password: it is %q", got)
	}
	c.Spec.Bootstrap = &v1alpha1.BootstrapSpec{InitDB: &v1alpha1.InitDBSpec{Owner: "app",
		Secret: &v1alpha1.LocalObjectReference{Name: "mine"}}}
	user := map[string][]byte{KeyUsername: []byte("app\n"), KeyPassword: []byte("secret\r\n")}
	s = must[*corev1.Secret](t)(AppSecret(c, nil, user, nil, chance()))
	for key, want := range map[string]string{
		"username": "app", "password": "secret",
		"uri":      "mysql://app:secret@db-rw.shop.svc:3306/app",
		"jdbc-uri": "jdbc:mysql://db-rw.shop.svc:3306/app?password=secret&sslMode=REQUIRED&user=app",
	} {
		if got := string(s.Data[key]); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
}

// TestTheApplicationsAccountIsNotRenamed: no server has an account of the new name, and it does not
// lose its name with the Secret that gave it.
func TestTheApplicationsAccountIsNotRenamed(t *testing.T) {
	c := cluster(t, "minimal")
	c.Spec.Bootstrap =
		&v1alpha1.BootstrapSpec{InitDB: &v1alpha1.InitDBSpec{Secret: &v1alpha1.LocalObjectReference{Name: "mine"}}}
	c.Status.EstablishedAt = new(metav1.NowMicro())
	was := map[string][]byte{KeyUsername: []byte("me"), KeyPassword: []byte("secret")}
	_, err := AppSecret(c, was, map[string][]byte{KeyUsername: []byte("you"), KeyPassword: []byte("x")}, nil, chance())
	if err == nil || !strings.Contains(err.Error(), `set the username back to that in the Secret db-app`) ||
		strings.Contains(err.Error(), `"me"`) || strings.Contains(err.Error(), `"you"`) {
		t.Errorf("got %v", err)
	}
	s := must[*corev1.Secret](t)(AppSecret(c, was, nil, nil, chance()))
	if got := string(s.Data["uri"]); got != "mysql://me:secret@db-rw.shop.svc:3306/app" {
		t.Errorf("without the user's Secret the URI is %s", got)
	}
}

func TestPasswordsAreLongAndOfLettersAndDigits(t *testing.T) {
	source, seen := chance(), map[string]bool{}
	for range 20 {
		p := must[string](t)(password(source))
		if !regexp.MustCompile(`^[A-Za-z0-9]{32}$`).MatchString(p) || seen[p] {
			t.Errorf("%q", p)
		}
		seen[p] = true
	}
	if _, err := password(bytes.NewReader([]byte("short"))); err == nil {
		t.Error("a password was made without enough chance")
	}
}
