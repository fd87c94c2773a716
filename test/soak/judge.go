package main

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/anishathalye/porcupine"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/test/writer"
)

// verdicts are what was found in the end.
type verdicts struct {
	rows, transactions, accesses, unknown int
	registers                             porcupine.CheckResult
}

func (v verdicts) String() string {
	return fmt.Sprintf("rows on each instance %d; transactions in binary logs %d; register accesses %d (%d writes of "+
		"unknown fate): %s",
		v.rows, v.transactions, v.accesses, v.unknown, map[porcupine.CheckResult]string{
			porcupine.Ok: "linearizable", porcupine.Illegal: "NOT linearizable",
			porcupine.Unknown: "not decided in time", "": "not checked"}[v.registers])
}

// judge holds what all instances have against what was acknowledged, and against each
// other, once the replicas have all.
func (s *soak) judge(ctx context.Context) error {
	c, err := s.bed.Get(ctx, key)
	if err != nil {
		return err
	}
	if err := s.awaitReplicas(ctx, c.Status.CurrentPrimary, c.Status.InstanceNames); err != nil {
		return err
	}
	var contents []string
	var logs [][]string
	for _, name := range c.Status.InstanceNames {
		has, err := s.judgeTables(ctx, name)
		if err != nil {
			return err
		}
		contents = append(contents, has)
		order, err := s.binaryLog(ctx, name)
		if err != nil {
			return err
		}
		logs = append(logs, order)
	}
	for i, name := range c.Status.InstanceNames[1:] {
		if contents[i+1] != contents[0] {
			s.violated("I2", "%s holds\n%s\nand %s\n%s", c.Status.InstanceNames[0], contents[0], name, contents[i+1])
		}
		s.judgeLogs(c.Status.InstanceNames[0], name, logs[0], logs[i+1])
	}
	s.judgeRegisters()
	return nil
}

func (s *soak) judgeRegisters() {
	s.judged.accesses, s.judged.unknown = len(s.registers.history), s.registers.unknown
	if s.judged.registers = s.registers.check(); s.judged.registers == porcupine.Illegal {
		s.violated("I1", "what clients of the registers saw cannot have come from one copy of them")
	}
}

func (s *soak) open(ctx context.Context, instance string) (*sql.DB, error) {
	e, err := s.bed.InstanceEndpoint(ctx, key, instance)
	if err != nil {
		return nil, err
	}
	return e.Open()
}

func (s *soak) ask(ctx context.Context, instance, query string) (string, error) {
	db, err := s.open(ctx, instance)
	if err != nil {
		return "", err
	}
	defer func() { _ = db.Close() }()
	var value string
	err = db.QueryRowContext(ctx, query).Scan(&value)
	if err != nil {
		err = fmt.Errorf("%s at %s: %w", query, instance, err)
	}
	return value, err
}

func (s *soak) awaitReplicas(ctx context.Context, primary string, names []string) error {
	db, err := s.open(ctx, primary)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	executed, err := writer.Settled(ctx, db)
	for _, name := range names {
		var late string
		if err == nil {
			late, err = s.ask(ctx, name, "SELECT WAIT_FOR_EXECUTED_GTID_SET('"+executed+"', 50)")
		}
		if err == nil && late != "0" {
			s.violated("I7", "%s has not executed all that %s has after 50 s", name, primary)
		}
	}
	return err
}

// judgeTables holds the writer's rows on one instance against what was acknowledged, and
// returns a digest of all that is there.
func (s *soak) judgeTables(ctx context.Context, name string) (string, error) {
	db, err := s.open(ctx, name)
	if err != nil {
		return "", err
	}
	defer func() { _ = db.Close() }()
	v, err := s.write.Verify(ctx, db)
	if err != nil {
		return "", err
	}
	if len(v.Missing) > 0 {
		s.violated("I2", "%d acknowledged rows are not on %s, the first: %+v", len(v.Missing), name, v.Missing[0])
	}
	if len(v.Extra) > 0 {
		s.violated("I1", "%d rows are on %s that the server had refused, the first: %+v",
			len(v.Extra), name, v.Extra[0])
	}
	s.judged.rows = v.Rows
	return s.ask(ctx, name, `SELECT CONCAT(@@GLOBAL.gtid_executed, ' ',
		(SELECT CONCAT(COUNT(*), ' ', BIT_XOR(CRC32(CONCAT_WS(' ', run, conn, seq, payload))))
			FROM app.writer_rows), ' ',
		(SELECT CONCAT(COUNT(*), ' ', BIT_XOR(CRC32(CONCAT_WS(' ', id, v, looks)))) FROM app.registers))`)
}

// binaryLog lists the transactions in an instance's binary logs, in their order. The
// local Kubernetes' volumes are directories of this machine.
func (s *soak) binaryLog(ctx context.Context, name string) ([]string, error) {
	var claim corev1.PersistentVolumeClaim
	var volume corev1.PersistentVolume
	if err := s.bed.Client.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: name}, &claim); err != nil {
		return nil, err
	}
	if err := s.bed.Client.Get(ctx, types.NamespacedName{Name: claim.Spec.VolumeName}, &volume); err != nil {
		return nil, err
	}
	if volume.Spec.HostPath == nil {
		return nil, fmt.Errorf("the volume of %s is no directory of this machine", name)
	}
	files, err := filepath.Glob(filepath.Join(volume.Spec.HostPath.Path, "data", "binlog.[0-9]*"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("there are no binary logs of %s: %w", name, err)
	}
	var all []string
	for _, file := range files { // in the order of their numbers
		log, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		all = append(all, transactionsIn(log)...)
	}
	return all, nil
}

// transactionsIn reads the GTIDs out of a binary log. It begins with four bytes; each
// event has a header of 19, with its type at 4 and its length at 9.
func transactionsIn(log []byte) []string {
	const magic, header, gtidEvent = 4, 19, 33
	var out []string
	for at := magic; at+header <= len(log); {
		length := int(binary.LittleEndian.Uint32(log[at+9:]))
		if length < header || at+length > len(log) {
			break // it is being written
		}
		if log[at+4] == gtidEvent && length >= header+25 {
			event := log[at+header:]
			out = append(out, fmt.Sprintf("%x:%d", event[1:17], binary.LittleEndian.Uint64(event[17:])))
		}
		at += length
	}
	return out
}

// judgeLogs holds the binary logs of two instances against each other: what both have, both have
// once and in the same order. An instance that was cloned begins later, so that only what both
// have is compared.
func (s *soak) judgeLogs(a, b string, first, second []string) {
	s.judged.transactions = max(s.judged.transactions, len(first), len(second))
	common := func(of, with []string) []string {
		there := map[string]bool{}
		for _, g := range with {
			there[g] = true
		}
		return slices.DeleteFunc(slices.Clone(of), func(g string) bool { return !there[g] })
	}
	x, y := common(first, second), common(second, first)
	if slices.Equal(x, y) {
		return
	}
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			s.violated("I1", "the binary logs of %s and %s differ from transaction %d on: %s, and %s", a, b, i,
				x[i], y[i])
			return
		}
	}
	s.violated("I1", "the binary log of %s has %d transactions that are in that of %s, too, which has %d of them: "+
		"one is there twice", a, len(x), b, len(y))
}
