package seal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"filippo.io/age"
)

// FileIdentity is the file of a Key, beside those of the store.
const FileIdentity = "age-identity"

// Key are identities of age: the first seals, and all of them open, so that a key can be
// replaced and what was sealed before still be read. The zero Key is none.
type Key struct{ identities []*age.X25519Identity }

// Read reads the Key of a directory that has the store's files, as it is now; the zero Key
// if there is none. KeyInvalid if it is of no use.
func Read(dir string) (Key, error) {
	text, err := os.ReadFile(filepath.Join(dir, FileIdentity))
	if errors.Is(err, fs.ErrNotExist) {
		return Key{}, nil
	}
	if err != nil {
		return Key{}, fmt.Errorf("reading the key of the encryption: %w", err)
	}
	return Parse(text)
}

// Parse reads what age-keygen writes: one identity a line, and comments. Several outputs
// may stand one behind the other. An error never holds any of the text.
func Parse(text []byte) (Key, error) {
	var k Key
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		one, err := age.ParseX25519Identity(line)
		switch {
		case strings.HasPrefix(line, "age1"):
			return Key{}, refuse(KeyInvalid, "line %d is a recipient, the public half of a key", i+1)
		case strings.HasPrefix(line, "AGE-SECRET-KEY-PQ-"):
			return Key{}, refuse(KeyInvalid,
				"line %d is a post-quantum identity, which this release does not know", i+1)
		case err != nil:
			return Key{}, refuse(KeyInvalid, "line %d is not AGE-SECRET-KEY-1..., whole and as it was written", i+1)
		}
		k.identities = append(k.identities, one)
	}
	if len(k.identities) == 0 {
		return Key{}, refuse(KeyInvalid, "no line holds a key")
	}
	return k, nil
}

// Recipient is the public half of what Seal seals with, as age1...; "" of the zero Key.
func (k Key) Recipient() string {
	if len(k.identities) == 0 {
		return ""
	}
	return k.identities[0].Recipient().String()
}

// String never tells the key.
func (k Key) String() string { return "age key of " + k.recipients() }

func (k Key) recipients() string {
	var all []string
	for _, one := range k.identities {
		all = append(all, one.Recipient().String())
	}
	return strings.Join(all, ", ")
}

// CheckRecipient refuses what is no recipient, as one that was read from a store.
func CheckRecipient(recipient string) error {
	if _, err := age.ParseX25519Recipient(recipient); err != nil {
		return fmt.Errorf("%.100q is no recipient of age", recipient)
	}
	return nil
}

// Opens refuses what was sealed to a recipient whose identity the Key does not have:
// KeyMissing of the zero Key, else KeyWrong.
func (k Key) Opens(recipient string) error {
	_, err := k.of(recipient)
	return err
}

func (k Key) of(recipient string) (*age.X25519Identity, error) {
	if len(k.identities) == 0 {
		return nil, refuse(KeyMissing, "it is encrypted to %s", recipient)
	}
	for _, one := range k.identities {
		if one.Recipient().String() == recipient {
			return one, nil
		}
	}
	return nil, refuse(KeyWrong, "it is encrypted to %s, and there is the identity of %s", recipient, k.recipients())
}

// Seal encrypts what is written, in chunks of 64 KiB, which is also how much memory it
// takes. Close writes the last of them, and leaves to open.
func (k Key) Seal(to io.Writer) (io.WriteCloser, error) {
	if len(k.identities) == 0 {
		return nil, refuse(KeyMissing, "nothing can be encrypted")
	}
	return age.Encrypt(to, k.identities[0].Recipient())
}

// Open decrypts what was sealed to a recipient, 64 KiB at a time. Nothing is given that is
// not what was sealed, and io.EOF only at its very end. It has read the header when it
// returns. An error that is not a Reason is of from, or of what is damaged.
func (k Key) Open(from io.Reader, recipient string) (io.Reader, error) {
	one, err := k.of(recipient)
	if err != nil {
		return nil, err
	}
	return age.Decrypt(from, one)
}
