package store_test

import (
	"crypto/sha256"
	"syscall"
	"testing"
	"time"

	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

// TestABodyOfAnotherSumIsNotTaken by an S3 server that is given a sum that was computed before.
func TestABodyOfAnotherSumIsNotTaken(t *testing.T) {
	s, err := store.OpenImpatiently(storetest.S3(t), 10*time.Second, 100*time.Millisecond)
	must(t, err)
	body := []byte("body")
	must(t, s.Put(store.WithSHA256(t.Context(), sha256.Sum256(body)), "right", body))
	must(t, s.Create(store.WithSHA256(t.Context(), sha256.Sum256(body)), "created", body))
	wrong := store.WithSHA256(t.Context(), sha256.Sum256([]byte("other")))
	for _, err := range []error{s.Put(wrong, "wrong", body), s.Create(wrong, "wrong", body)} {
		mustFail(t, err, store.ConnectionLost)
	}
	_, err = s.Get(t.Context(), "wrong")
	mustFail(t, err, store.NotFound)
}

// BenchmarkPut tells how much CPU who writes takes, without the server: with its sum known, and not.
func BenchmarkPut(b *testing.B) {
	s, err := store.Open(storetest.S3(b))
	if err != nil {
		b.Fatal(err)
	}
	body := make([]byte, 16<<20)
	sum := sha256.Sum256(body)
	for _, known := range []bool{false, true} {
		b.Run(map[bool]string{true: "known", false: "hashed"}[known], func(b *testing.B) {
			ctx := b.Context()
			if known {
				ctx = store.WithSHA256(ctx, sum)
			}
			before := cpu()
			for b.Loop() {
				if err := s.Put(ctx, "key", body); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((cpu()-before).Microseconds())/float64(16*b.N), "cpu-µs/MiB")
			b.SetBytes(int64(len(body)))
		})
	}
}

// cpu is what this process has computed.
func cpu() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
