package archive

import (
	"io"
	"testing"

	facts "cnmsql.co/internal/core/archive"
)

func rawOf(t *testing.T, m *memory, p facts.Part) []byte {
	t.Helper()
	in, err := openPart(t.Context(), m, prefix, p)
	must(t, err)
	raw, err := io.ReadAll(in)
	must(t, err)
	must(t, in.Close())
	return raw
}
