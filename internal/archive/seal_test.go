package archive

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/seal"
)

// newKey is a key with so many identities, and each of them.
func newKey(t *testing.T, n int) (all seal.Key, each []seal.Key) {
	t.Helper()
	var lines []string
	for range n {
		one, err := age.GenerateX25519Identity()
		must(t, err)
		k, err := seal.Parse([]byte(one.String()))
		must(t, err)
		lines, each = append(lines, one.String()), append(each, k)
	}
	all, err := seal.Parse([]byte(strings.Join(lines, "\n")))
	must(t, err)
	return all, each
}

// mixed ships three transactions each in plain, with the first and with the second key, and
// one that is cut into pieces. The archive is as it is loaded without a key.
func mixed(t *testing.T, l *logs, m *memory, each []seal.Key) facts.Archive {
	t.Helper()
	var key seal.Key
	c := l.config(m, 1)
	c.Key = func() (seal.Key, error) { return key, nil }
	s := begin(t, c)
	for _, key = range append([]seal.Key{{}}, each...) {
		l.commit(1, 3)
		settle()
	}
	l.write(1, 1, 35000)
	l.execute()
	settle()
	must(t, s.end())
	m.key = seal.Key{}
	return loaded(t, m)
}

func TestAnArchiveThatIsPartlyEncrypted(t *testing.T) {
	story("", t, func(t *testing.T, l *logs, m *memory) {
		all, each := newKey(t, 2)
		a := mixed(t, l, m, each)
		recipients := map[string]int64{}
		for _, p := range a.Parts {
			recipients[p.Recipient] += p.Transactions
		}
		if recipients[""] != 3 || recipients[each[0].Recipient()] != 3 || recipients[each[1].Recipient()] != 4 {
			t.Fatalf("%v", recipients)
		}
		upTo := func(key seal.Key, target facts.Target) (facts.Plan, error) {
			m.key = key
			plan, err := place(m).Choose(t.Context(), &a, facts.Base{Epoch: 1}, target)
			if err == nil {
				err = place(m).Opens(t.Context(), plan)
			}
			return plan, err
		}
		for name, c := range map[string]struct {
			key    seal.Key
			target string
			why    *seal.Reason
		}{
			"all of it":               {all, "10", nil},
			"what is plain":           {seal.Key{}, "3", nil},
			"what is not":             {seal.Key{}, "6", seal.KeyMissing},
			"before the key was new":  {each[0], "6", nil},
			"after the key was new":   {each[0], "9", seal.KeyWrong},
			"without the former one":  {each[1], "9", seal.KeyWrong},
			"to the end, without any": {seal.Key{}, "10", seal.KeyMissing},
		} {
			plan, err := upTo(c.key, facts.Target{Kind: facts.ToGTIDs, GTIDs: ids(1, c.target)})
			if c.why == nil && err != nil || c.why != nil && !errors.Is(err, c.why) {
				t.Errorf("%s: %v", name, err)
			}
			if c.why == nil && !plan.Set.Equal(ids(1, "1-"+c.target)) {
				t.Errorf("%s: %s", name, plan.Set)
			}
		}
		m.key = all
		archivedOnce(t, m, l.executed)
		plan, err := upTo(all, facts.Target{})
		must(t, err)
		inOrder(t, m, plan)
	})
}

// The end lies within a part that has to be read.
func TestATargetWithinAPartThatCannotBeOpenedIsRefused(t *testing.T) {
	story("", t, func(t *testing.T, l *logs, m *memory) {
		_, each := newKey(t, 2)
		a := mixed(t, l, m, each)
		target := facts.Target{Kind: facts.ToGTIDs, GTIDs: ids(1, "5")}
		if _, err := place(m).Choose(t.Context(), &a, facts.Base{Epoch: 1}, target); !errors.Is(err, seal.KeyMissing) {
			t.Errorf("%v", err)
		}
		m.key = each[0]
		plan, err := place(m).Choose(t.Context(), &a, facts.Base{Epoch: 1}, target)
		if err != nil || !plan.Set.Equal(ids(1, "1-5")) {
			t.Errorf("%s, %v", plan.Set, err)
		}
	})
}

// As docs/archive-layout.md tells a human: what stands behind the facts is age's, and what
// that gives is zstd's.
func TestAnEncryptedPartIsOpenedByHand(t *testing.T) {
	story("", t, func(t *testing.T, l *logs, m *memory) {
		_, each := newKey(t, 1)
		a := mixed(t, l, m, each)
		for _, p := range a.Parts {
			object := m.objects[partKey(prefix, p.Key())]
			behind := object[8+binary.LittleEndian.Uint32(object[4:]):]
			if p.Recipient == "" {
				continue
			}
			if !bytes.HasPrefix(behind, []byte("age-encryption.org/v1\n")) || digest(behind) != p.SHA256 {
				t.Errorf("part %d: %.30q", p.Sequence, behind)
			}
			in, err := each[0].Open(bytes.NewReader(behind), p.Recipient)
			must(t, err)
			z, err := zstd.NewReader(in)
			must(t, err)
			raw, err := io.ReadAll(z)
			must(t, err)
			if int64(len(raw)) != p.Size || p.Piece == 0 && check(raw, p.Transactions) != nil {
				t.Errorf("part %d has %d bytes of %d", p.Sequence, len(raw), p.Size)
			}
			if bytes.Contains(object, []byte(digest(raw))) {
				t.Errorf("part %d tells a hash of what is in it", p.Sequence)
			}
		}
	})
}

// Each byte, and each end. It is damage, whatever was hit, and never a wrong key.
func TestAnEncryptedPartThatIsDamagedIsRefused(t *testing.T) {
	story("", t, func(t *testing.T, l *logs, m *memory) {
		_, each := newKey(t, 1)
		a := mixed(t, l, m, each)
		m.key = each[0]
		at := slices.IndexFunc(a.Parts, func(p facts.Part) bool { return p.Recipient != "" && p.Piece == 0 })
		part := a.Parts[at]
		key := partKey(prefix, part.Key())
		whole := m.objects[key]
		refused := func(what string, n int, object []byte) {
			t.Helper()
			m.objects[key] = object
			_, err := place(m).transactions(t.Context(), []facts.Part{part})
			var ofKey *seal.Reason
			if err == nil || errors.As(err, &ofKey) ||
				n >= 8 && len(object) >= len(whole) && !errors.Is(err, PartDamaged) {
				t.Errorf("%s %d: %v", what, n, err)
			}
		}
		for n := range len(whole) {
			flipped := bytes.Clone(whole)
			flipped[n] ^= 4
			refused("with a bit flipped in byte", n, flipped)
			refused("cut after", n, whole[:n])
		}
		refused("a byte longer than", len(whole), append(bytes.Clone(whole), 0))
	})
}

// The file was written before there was encryption.
func TestAPlainPartIsWhatItWas(t *testing.T) {
	was, err := os.ReadFile("testdata/format1.binlog.zst")
	must(t, err)
	part, err := readFacts(bytes.NewReader(was), facts.Key{Epoch: 1, Sequence: 1})
	must(t, err)
	m := newMemory()
	m.objects[partKey(prefix, part.Key())] = was
	raw := rawOf(t, m, part)
	must(t, check(raw, part.Transactions))
	c, err := newCompressor()
	must(t, err)
	again := part
	object, err := c.object(&again, raw, seal.Key{})
	must(t, err)
	n := frameHeader + binary.LittleEndian.Uint32(was[4:])
	if !bytes.Equal(object[:n], was[:n]) || again.SHA256 != part.SHA256 || part.Transactions != 5 {
		t.Errorf("%s\n%s", object[:n], was[:n])
	}
}

func TestThePartOfALaterReleaseIsRefusedByName(t *testing.T) {
	story("", t, func(t *testing.T, l *logs, m *memory) {
		_, each := newKey(t, 1)
		part := mixed(t, l, m, each).Parts[0]
		for text, why := range map[string]*Reason{`"format":3`: FormatUnknown, `"format":2`: PartDamaged} {
			part.Recipient = ""
			changed := part
			changed.Format = int(text[len(text)-1] - '0')
			object, err := beginning(&changed, 0)
			must(t, err)
			m.objects[partKey(prefix, part.Key())] = object
			a, err := Load(t.Context(), m, prefix)
			if err != nil || len(a.Unreadable) != 1 || string(a.Unreadable[0].Reason) != why.Name ||
				a.Unreadable[0].Key != part.Key() {
				t.Errorf("%s: %+v, %v", text, a.Unreadable, err)
			}
		}
	})
}

func TestShipperAndKeys(t *testing.T) {
	story("without the key nothing is stored, and with it all", t, func(t *testing.T, l *logs, m *memory) {
		_, each := newKey(t, 1)
		c := l.config(m, 1)
		c.Key = func() (seal.Key, error) { return seal.Key{}, seal.KeyInvalid }
		s := begin(t, c)
		l.commit(1, 3)
		settle()
		if err := <-s.ended; !errors.Is(err, seal.KeyInvalid) || !errors.Is(s.Status().Failure, seal.KeyInvalid) {
			t.Errorf("%v, %+v", err, s.Status())
		}
		archivedOnce(t, m, ids(1, ""))
		c.Key = func() (seal.Key, error) { return each[0], nil }
		s = begin(t, c)
		settle()
		must(t, s.end())
		m.key = each[0]
		a := archivedOnce(t, m, l.executed)
		if s.Status().Last.Recipient != each[0].Recipient() || len(a.Parts) != 1 {
			t.Errorf("%+v", s.Status().Last)
		}
	})
	story("a part whose answer was lost is known again", t, func(t *testing.T, l *logs, m *memory) {
		_, each := newKey(t, 1)
		lost := 0
		m.after = func(key string) error {
			if strings.HasSuffix(key, partSuffix) && lost == 0 {
				lost++
				return errFault
			}
			return nil
		}
		c := l.config(m, 1)
		c.Key = func() (seal.Key, error) { return each[0], nil }
		s := begin(t, c)
		l.commit(1, 3)
		settle()
		time.Sleep(time.Minute)
		must(t, s.end())
		m.key = each[0]
		if a := archivedOnce(t, m, l.executed); len(a.Parts) != 1 || lost != 1 {
			t.Errorf("%d parts", len(a.Parts))
		}
	})
}
