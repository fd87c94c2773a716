package mysql

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Passwords are hashes of the passwords of Secrets that an account was given, the newest first.
// They stand in the account's attributes, so that they come with the data wherever these go: by
// replication, by a copy, in a backup. They are as hard to guess from as what the server itself keeps.
type Passwords []string

// passwordsKept is how many are.
const passwordsKept = 6

// attributes are how they stand there.
type attributes struct {
	Cnmsql struct {
		Passwords Passwords `json:"passwords"`
	} `json:"cnmsql"`
}

// Place returns where a password stands among them, 0 for the newest; -1 when it does not.
func (p Passwords) Place(password string) int {
	return slices.IndexFunc(p, func(hash string) bool { return isHashOf(hash, password) })
}

// with has a password as the newest.
func (p Passwords) with(password string) Passwords {
	out := Passwords{hashed(password)}
	for _, hash := range p {
		if !isHashOf(hash, password) {
			out = append(out, hash)
		}
	}
	return out[:min(len(out), passwordsKept)]
}

// attribute is JSON that the server merges into what it has of an account's.
func (p Passwords) attribute() string {
	var a attributes
	a.Cnmsql.Passwords = p
	text, _ := json.Marshal(a) // never fails
	return string(text)
}

// isHashOf reports whether hashed made a hash of a password.
func isHashOf(hash, password string) bool {
	salt, found := strings.CutPrefix(hash, sha2Prefix)
	if !found || len(salt) < sha2Salt {
		return false
	}
	salt = salt[:sha2Salt]
	return hash == sha2Prefix+salt+cryptSHA256([]byte(password), []byte(salt))
}

// first has the password that an account is made with.
func first(a Account) Passwords { return Passwords{}.with(a.Password) }

// noted are statements by which the data tell that accounts have the passwords of their Secrets.
// root@'%' is told of where it gets its password: where there is none, a policy for passwords refuses
// IF EXISTS without a password.
func (f First) noted() []statement {
	const note = "ALTER USER ?@? ATTRIBUTE ?"
	list := []statement{
		{note, []any{f.Owner.User, "%", first(f.Owner).attribute()}},
		{note, []any{f.Replication.User, "%", first(f.Replication).attribute()}},
		{note, []any{f.Root.User, "localhost", first(f.Root).attribute()}},
		{note, []any{f.Manager.User, "localhost", first(f.Manager).attribute()}},
	}
	if f.Backup.User != "" {
		list = append(list, statement{note, []any{f.Backup.User, "%", first(f.Backup).attribute()}})
	}
	return list
}

// PasswordsOf reads the passwords that the data tell of an account; none when nothing was noted,
// or what stands there is no record of this kind. exists is false when there is no such account,
// which is no error.
func (s *Server) PasswordsOf(ctx context.Context, user, host string) (p Passwords, exists bool, err error) {
	var text sql.NullString
	err = s.db.QueryRowContext(ctx,
		"SELECT ATTRIBUTE FROM information_schema.USER_ATTRIBUTES WHERE USER = ? AND HOST = ?",
		user, host).Scan(&text)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("reading the attributes of %s@%s: %w", user, host, err)
	}
	var a attributes
	if text.Valid {
		// What somebody wrote there is no record, and is replaced by one.
		_ = json.Unmarshal([]byte(text.String), &a)
	}
	return a.Cnmsql.Passwords, true, nil
}

// NotePassword has the data tell that an account's Secret was followed. The password stays. Of an account whose
// plugin is not loaded nothing is noted: the server changes nothing of it but its plugin.
func (s *Server) NotePassword(ctx context.Context, a Account, host string, p Passwords) error {
	err := s.alterAccount(ctx, a, host, statement{"ALTER USER IF EXISTS ?@? ATTRIBUTE ?",
		[]any{a.User, host, p.with(a.Password).attribute()}})
	if isError(err, errNoPlugin) {
		return nil
	}
	return err
}

// ChangePassword sets the password of an account that exists, and has the data tell so, in one
// statement; an account that does not exist is left alone.
func (s *Server) ChangePassword(ctx context.Context, a Account, host string, p Passwords) error {
	return s.alterAccount(ctx, a, host, statement{"ALTER USER IF EXISTS ?@? " + byPassword + " ATTRIBUTE ?",
		[]any{a.User, host, a.Password, p.with(a.Password).attribute()}})
}

func (s *Server) alterAccount(ctx context.Context, a Account, host string, st statement) error {
	if a.Password == "" {
		return fmt.Errorf("changing the password of %s@%s: there is none, and an account without one is never made",
			a.User, host)
	}
	if err := st.execute(ctx, s.db); err != nil {
		return fmt.Errorf("changing the password of %s@%s: %w", a.User, host, err)
	}
	return nil
}
