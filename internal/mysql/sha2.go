package mysql

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
)

// The form in which caching_sha2_password keeps a password: rounds in thousands, the salt, and
// what the SHA-256 of crypt(3) makes of both.
const (
	sha2Plugin = "caching_sha2_password"
	sha2Rounds = 5000
	sha2Salt   = 20
)

// sha2Prefix begins a hash: which digest, and the rounds.
var sha2Prefix = fmt.Sprintf("$A$%03X$", sha2Rounds/1000)

const crypt64 = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// hashed is a password as caching_sha2_password keeps it. What is given to the server so is
// held to no policy: neither that of validate_password, which sees no password, nor the
// history of an account, whose hashes have other salts.
func hashed(password string) string {
	salt := make([]byte, sha2Salt)
	_, _ = rand.Read(salt) // never fails
	for i := range salt {
		salt[i] = crypt64[salt[i]&63]
	}
	return fmt.Sprintf("%s%s%s", sha2Prefix, salt, cryptSHA256([]byte(password), salt))
}

// cryptSHA256 is the hash of crypt(3) by SHA-256 with 5000 rounds
// (https://www.akkadia.org/drepper/SHA-crypt.txt), whose salt may be longer here.
func cryptSHA256(password, salt []byte) string {
	sum := func(parts ...[]byte) []byte {
		h := sha256.New()
		for _, p := range parts {
			_, _ = h.Write(p)
		}
		return h.Sum(nil)
	}
	b := sum(password, salt, password)
	first := [][]byte{password, salt, stretch(b, len(password))}
	for n := len(password); n > 0; n >>= 1 {
		if n&1 == 1 {
			first = append(first, b)
		} else {
			first = append(first, password)
		}
	}
	a := sum(first...)
	p := stretch(sum(bytes.Repeat(password, len(password))), len(password))
	s := stretch(sum(bytes.Repeat(salt, 16+int(a[0]))), len(salt))
	for round := range sha2Rounds {
		in := [][]byte{a, nil, nil, p}
		if round%2 == 1 {
			in[0], in[3] = p, a
		}
		if round%3 != 0 {
			in[1] = s
		}
		if round%7 != 0 {
			in[2] = p
		}
		a = sum(in...)
	}
	return encodeCrypt(a)
}

// stretch repeats what there is up to a length.
func stretch(b []byte, length int) []byte {
	out := make([]byte, 0, length+len(b))
	for len(out) < length {
		out = append(out, b...)
	}
	return out[:length]
}

// encodeCrypt is base64 as crypt(3) writes it: of three bytes each, in an order of its own.
func encodeCrypt(a []byte) string {
	var out []byte
	write := func(v uint32, digits int) {
		for range digits {
			out = append(out, crypt64[v&63])
			v >>= 6
		}
	}
	x, y, z := 0, 10, 20
	for range 10 {
		write(uint32(a[x])<<16|uint32(a[y])<<8|uint32(a[z]), 4)
		x, y, z = z+1, x+1, y+1
	}
	write(uint32(a[31])<<8|uint32(a[30]), 3)
	return string(out)
}
