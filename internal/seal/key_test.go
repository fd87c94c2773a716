package seal

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// identity is a line of age-keygen, of a key of its own.
func identity(t testing.TB) string {
	t.Helper()
	one, err := age.GenerateX25519Identity()
	must(t, err)
	return one.String()
}

func key(t testing.TB, lines ...string) Key {
	t.Helper()
	k, err := Parse([]byte(strings.Join(lines, "\n")))
	must(t, err)
	return k
}

func sealed(t testing.TB, k Key, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := k.Seal(&out)
	must(t, err)
	_, err = w.Write(content)
	must(t, errors.Join(err, w.Close()))
	return out.Bytes()
}

func opened(k Key, recipient string, object []byte) ([]byte, error) {
	r, err := k.Open(bytes.NewReader(object), recipient)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

func random(t testing.TB, n int) []byte {
	t.Helper()
	b := make([]byte, n)
	_, err := rand.Read(b)
	must(t, err)
	return b
}

func TestWhatIsSealedIsOpened(t *testing.T) {
	k := key(t, identity(t))
	for _, n := range []int{0, 1, 64<<10 - 1, 64 << 10, 64<<10 + 1, 1 << 20} {
		content := random(t, n)
		object := sealed(t, k, content)
		if n > 100 && bytes.Contains(object, content[:32]) {
			t.Errorf("of %d bytes some are plain", n)
		}
		got, err := opened(k, k.Recipient(), object)
		must(t, err)
		if !bytes.Equal(got, content) {
			t.Errorf("%d bytes became %d", n, len(got))
		}
	}
}

func TestTheFirstKeySealsAndAllOpen(t *testing.T) {
	before, after := identity(t), identity(t)
	old, both := key(t, before), key(t, "# the new one", after, "", " "+before+"\r")
	if both.Recipient() != key(t, after).Recipient() {
		t.Errorf("the recipient is %s", both.Recipient())
	}
	for _, k := range []Key{old, both} {
		if got, err := opened(both, k.Recipient(), sealed(t, k, []byte("hello"))); err != nil ||
			string(got) != "hello" {
			t.Errorf("%s: %q, %v", k, got, err)
		}
	}
	_, err := opened(old, both.Recipient(), sealed(t, both, []byte("hello")))
	if !errors.Is(err, KeyWrong) || !strings.Contains(err.Error(), both.Recipient()) ||
		!strings.Contains(err.Error(), old.Recipient()) {
		t.Errorf("%v", err)
	}
}

func TestWithoutAKeyNothingIsSealedOrOpened(t *testing.T) {
	k := key(t, identity(t))
	if _, err := (Key{}).Seal(io.Discard); !errors.Is(err, KeyMissing) {
		t.Errorf("%v", err)
	}
	if _, err := opened(Key{}, k.Recipient(), sealed(t, k, nil)); !errors.Is(err, KeyMissing) ||
		!strings.Contains(err.Error(), k.Recipient()) {
		t.Errorf("%v", err)
	}
}

// An error may reach a status that many read.
func TestWhatIsNoKeyIsRefusedWithoutATellingWord(t *testing.T) {
	good := identity(t)
	for name, text := range map[string]string{
		"nothing":         "\n\n",
		"a comment alone": "# public key: " + key(t, good).Recipient(),
		"the public half": key(t, good).Recipient(),
		"cut off":         good[:len(good)-1],
		"a digit changed": strings.Replace(good, good[40:41], map[bool]string{true: "P",
			false: "Q"}[good[40] == 'Q'], 1),
		"in small":        strings.ToLower(good),
		"a password":      "hunter2hunter2",
		"a key behind it": "hunter2hunter2\n" + good,
		"post-quantum":    "AGE-SECRET-KEY-PQ-1" + good[16:],
		"of another kind": "-----BEGIN OPENSSH PRIVATE KEY-----\n" + good,
	} {
		_, err := Parse([]byte(text))
		if !errors.Is(err, KeyInvalid) || !strings.Contains(err.Error(), "age-keygen") {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(fmt.Sprint(err), "hunter2") || strings.Contains(fmt.Sprint(err), good[18:30]) {
			t.Errorf("%s: it tells the key: %v", name, err)
		}
	}
}

func TestAKeyIsNotPrinted(t *testing.T) {
	line := identity(t)
	k := key(t, line)
	said := fmt.Sprintf("%v %+v %s %+v", k, k, k, struct{ Key Key }{k})
	if strings.Contains(said, line[18:30]) || !strings.Contains(said, k.Recipient()) {
		t.Error(said)
	}
}

func TestTheKeyOfADirectoryIsReadAsItIsNow(t *testing.T) {
	dir := t.TempDir()
	k, err := Read(dir)
	if err != nil || k.Recipient() != "" {
		t.Fatalf("%s, %v", k, err)
	}
	for range 2 {
		line := identity(t)
		must(t, os.WriteFile(filepath.Join(dir, FileIdentity), []byte("# created: today\n"+line+"\n"), 0o600))
		if k, err = Read(dir); err != nil || k.Recipient() != key(t, line).Recipient() {
			t.Errorf("%s, %v", k, err)
		}
	}
	must(t, os.WriteFile(filepath.Join(dir, FileIdentity), nil, 0o600))
	if _, err = Read(dir); !errors.Is(err, KeyInvalid) {
		t.Errorf("%v", err)
	}
}

// Any byte that differs, and any end that comes early or late. With the right key it is
// damage, and never a wrong key.
func TestWhatIsDamagedIsNotOpened(t *testing.T) {
	k := key(t, identity(t))
	whole := sealed(t, k, random(t, 3000))
	for n := range len(whole) {
		var reason *Reason
		flipped := bytes.Clone(whole)
		flipped[n] ^= 4
		if _, err := opened(k, k.Recipient(), flipped); err == nil || errors.As(err, &reason) {
			t.Errorf("byte %d flipped: %v", n, err)
		}
		if _, err := opened(k, k.Recipient(), whole[:n]); err == nil || errors.As(err, &reason) {
			t.Errorf("%d bytes of it: %v", n, err)
		}
	}
	if _, err := opened(k, k.Recipient(), append(bytes.Clone(whole), 0)); err == nil {
		t.Error("a byte more is not noticed")
	}
	long := sealed(t, k, random(t, 200<<10))
	if _, err := opened(k, k.Recipient(), long[:len(long)-(200<<10)%(64<<10)-16]); err == nil {
		t.Error("an end between two chunks is not noticed")
	}
}

func TestARecipientIsOne(t *testing.T) {
	must(t, CheckRecipient(key(t, identity(t)).Recipient()))
	for _, text := range []string{"", "age1", "age1xyz", strings.Repeat("x", 10000)} {
		if err := CheckRecipient(text); err == nil || len(err.Error()) > 200 {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

func BenchmarkSeal(b *testing.B) {
	k, content := key(b, identity(b)), random(b, 32<<20)
	b.SetBytes(int64(len(content)))
	for b.Loop() {
		w, err := k.Seal(io.Discard)
		must(b, err)
		_, err = w.Write(content)
		must(b, errors.Join(err, w.Close()))
	}
}

func BenchmarkOpen(b *testing.B) {
	k := key(b, identity(b))
	object := sealed(b, k, random(b, 32<<20))
	b.SetBytes(32 << 20)
	for b.Loop() {
		r, err := k.Open(bytes.NewReader(object), k.Recipient())
		must(b, err)
		_, err = io.Copy(io.Discard, r)
		must(b, err)
	}
}

// A small part costs an agreement on a key besides.
func BenchmarkSealKiB(b *testing.B) {
	k, content := key(b, identity(b)), random(b, 1<<10)
	for b.Loop() {
		_ = sealed(b, k, content)
	}
}
