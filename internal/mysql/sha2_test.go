package mysql

import (
	"strings"
	"testing"
)

// The hashes are what `openssl passwd -5` makes.
func TestThePasswordIsHashedAsTheServerHashesIt(t *testing.T) {
	for _, c := range []struct{ password, salt, want string }{
		{"Hello world!", "saltstring", "5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5"},
		{"This is just a test", "toolongsaltstrin", "Un/5jzAHMgOGZ5.mWJpuVolil07guHPvOW8mGRcvxa5"},
		{"a password of more than thirty-two bytes, which is stretched", "abcdefghijklmnop",
			"sWtWJeAiyJwF74Qk8AElWbWLvWJCQR7Oo6fIszQ/C24"},
	} {
		if got := cryptSHA256([]byte(c.password), []byte(c.salt)); got != c.want {
			t.Errorf("%q with %q is %s, and ought to be %s", c.password, c.salt, got, c.want)
		}
	}
	one, two := hashed("x"), hashed("x")
	if one == two || len(one) != len("$A$005$")+20+43 || !strings.HasPrefix(one, "$A$005$") {
		t.Errorf("twice hashed, it is %s and %s", one, two)
	}
}
