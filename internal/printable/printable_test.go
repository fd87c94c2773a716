package printable

import "testing"

func TestWhatIsNotPrintableBecomesASpace(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "",
		"Größe 5 GiB → 7 GiB":               "Größe 5 GiB → 7 GiB",
		"a\nb\rc\td":                        "a b c d",
		"\x1b[2K\x1b[1Ashop":                " [2K [1Ashop",
		"one\u0085two\u2028three\u2029four": "one two three four",
		"left\u202eright\u200b":             "left right ",
		"\u009b2J\x7f\x00":                  " 2J  ",
		"no UTF-8: \x9b2J":                  "no UTF-8: \ufffd2J",
	} {
		if got := Text(text); got != want {
			t.Errorf("%q became %q, not %q", text, got, want)
		}
	}
}
