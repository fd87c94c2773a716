package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/test/scalebench/scale"
)

const (
	// patience is how long anything may take.
	patience = 15 * time.Minute
	// wave is how many Clusters are made at a time.
	wave = 50
	// atOnce is how many primaries crash at once.
	atOnce = 100
)

// stage is what is measured.
type stage struct {
	o        options
	fleet    *fleet
	log      string
	operator *process
	clusters []types.NamespacedName
}

func namespace(n int) string { return fmt.Sprintf("team-%d", n) }

func (s *stage) namespaces(ctx context.Context) error {
	for n := range s.o.namespaces {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace(n)}}
		if err := s.fleet.kube.live.Create(ctx, ns); err != nil {
			return err
		}
	}
	return nil
}

// row measures with n Clusters.
func (s *stage) row(ctx context.Context, n int) (r scale.Row, err error) {
	r.Clusters = n
	if r.Made, err = s.make(ctx, n); err != nil {
		return r, err
	}
	if r.StartUp, err = s.startUp(ctx); err != nil {
		return r, err
	}
	if err := s.rest(ctx, &r); err != nil {
		return r, err
	}
	if r.One, err = s.oneByOne(ctx); err != nil {
		return r, err
	}
	if n >= atOnce {
		some := s.some(atOnce)
		if r.Many, err = s.react(ctx, some, func() { s.crash(some) }); err != nil {
			return r, err
		}
		if r.Node, err = s.loseNode(ctx); err != nil {
			return r, err
		}
	}
	_, r.Peak = s.operator.memory()
	return r, s.healthy(ctx)
}

// make makes Clusters until there are n, some at a time, and returns when all are healthy.
func (s *stage) make(ctx context.Context, n int) (took float64, err error) {
	if s.operator == nil {
		if err := s.start(); err != nil {
			return 0, err
		}
	}
	begun := time.Now()
	for len(s.clusters) < n {
		for range min(wave, n-len(s.clusters)) {
			if err := s.makeOne(ctx, len(s.clusters)); err != nil {
				return 0, err
			}
		}
		if err := s.healthy(ctx); err != nil {
			return 0, err
		}
	}
	return time.Since(begun).Seconds(), nil
}

func (s *stage) makeOne(ctx context.Context, n int) error {
	c := &v1alpha1.Cluster{}
	c.Namespace, c.Name = namespace(n%s.o.namespaces), fmt.Sprintf("db%d", n)
	c.Spec.Instances, c.Spec.Storage.Size = instances, "1Gi"
	c.Spec.MySQL.SemiSync = &v1alpha1.SemiSyncSpec{Enabled: true, DataDurability: v1alpha1.DurabilityQuorum}
	s.clusters = append(s.clusters, types.NamespacedName{Namespace: c.Namespace, Name: c.Name})
	return s.fleet.kube.live.Create(ctx, c)
}

func (s *stage) start() (err error) {
	s.operator, err = startOperator(s.o.operator, s.fleet.kube.config, s.log)
	return err
}

// end ends what was started.
func (s *stage) end() {
	if s.operator != nil {
		s.operator.kill()
	}
}

// startUp kills the operator and starts it again: until it has heard all instances.
func (s *stage) startUp(ctx context.Context) (float64, error) {
	s.operator.kill()
	if err := await(ctx, "the former streams to end", func() bool { return s.fleet.heard() == 0 }); err != nil {
		return 0, err
	}
	begun := time.Now()
	if err := s.start(); err != nil {
		return 0, err
	}
	err := s.await(ctx, "all instances to be heard", func() bool {
		return s.fleet.heard() == instances*len(s.clusters)
	})
	return time.Since(begun).Seconds(), err
}

// rest measures what the operator does while nothing happens.
func (s *stage) rest(ctx context.Context, r *scale.Row) error {
	if err := pause(ctx, s.o.settling); err != nil {
		return err
	}
	before, err := s.operator.meter(ctx)
	if err != nil {
		return err
	}
	if err := pause(ctx, s.o.rest); err != nil {
		return err
	}
	after, err := s.operator.meter(ctx)
	if err != nil {
		return err
	}
	took := after.at.Sub(before.at).Seconds()
	r.CPU = (after.cpu - before.cpu).Seconds() / took
	r.Reads, r.Writes = (after.reads-before.reads)/took, (after.writes-before.writes)/took
	r.Resident, _ = s.operator.memory()
	return nil
}

// oneByOne has primaries of some clusters crash, one after the other.
func (s *stage) oneByOne(ctx context.Context) (scale.Reaction, error) {
	var all []time.Duration
	for range s.o.crashes {
		one := s.some(1)
		took, err := s.reactions(ctx, one, func() { s.crash(one) })
		if err != nil {
			return scale.Reaction{}, err
		}
		all = append(all, took...)
		if err := s.healthy(ctx); err != nil {
			return scale.Reaction{}, err
		}
		if err := pause(ctx, 3*time.Second); err != nil {
			return scale.Reaction{}, err
		}
	}
	return *reaction(all), nil
}

// some are n clusters, drawn.
func (s *stage) some(n int) []types.NamespacedName {
	all := slices.Clone(s.clusters)
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:n]
}

// primary of a cluster is whom -rw leads to.
func (s *stage) primary(cluster types.NamespacedName) *instance {
	to := s.fleet.routed(cluster).to
	return s.fleet.find(types.NamespacedName{Namespace: cluster.Namespace, Name: to})
}

func (s *stage) crash(clusters []types.NamespacedName) {
	for _, c := range clusters {
		s.primary(c).crash()
	}
}

// loseNode cuts a node off, and brings it back when all primaries are elsewhere.
func (s *stage) loseNode(ctx context.Context) (*scale.Reaction, error) {
	lost := nodes[0]
	var those []types.NamespacedName
	for _, c := range s.clusters {
		if s.primary(c).node() == lost {
			those = append(those, c)
		}
	}
	var mend func()
	r, err := s.react(ctx, those, func() {
		mend = s.fleet.cut(lost)
		for _, c := range those {
			former := s.primary(c)
			time.AfterFunc(core.SilentAfter, former.abandon)
		}
	})
	mend()
	return r, errors.Join(err, s.fleet.showAgain(ctx))
}

// react has something happen to primaries. After their reactions it measures nothing for a while.
func (s *stage) react(ctx context.Context, those []types.NamespacedName, happen func()) (*scale.Reaction, error) {
	took, err := s.reactions(ctx, those, happen)
	if err != nil {
		return nil, err
	}
	return reaction(took), pause(ctx, s.o.settling)
}

// reactions is how long it takes until -rw of each leads to another that takes writes.
func (s *stage) reactions(ctx context.Context, those []types.NamespacedName, happen func()) ([]time.Duration, error) {
	former := map[types.NamespacedName]string{}
	for _, c := range those {
		former[c] = s.fleet.routed(c).to
	}
	begun := time.Now()
	happen()
	var took []time.Duration
	for _, c := range those {
		err := s.await(ctx, "another primary of "+c.String(), func() bool {
			to := s.fleet.routed(c).to
			return to != "" && to != former[c] && s.primary(c).open.Load()
		})
		if err != nil {
			return nil, err
		}
		took = append(took, s.fleet.routed(c).at.Sub(begun))
	}
	return took, nil
}

func reaction(took []time.Duration) *scale.Reaction {
	slices.Sort(took)
	return &scale.Reaction{Primaries: len(took), Median: took[len(took)/2].Seconds(), Max: took[len(took)-1].Seconds()}
}

// healthy returns when all Clusters are.
func (s *stage) healthy(ctx context.Context) error {
	return s.await(ctx, "all Clusters to be healthy", func() bool { return s.fleet.countHealthy() == len(s.clusters) })
}

// await is await while the operator lives.
func (s *stage) await(ctx context.Context, what string, ok func() bool) error {
	err := await(ctx, what, func() bool { return s.operator.hasEnded() || ok() })
	if err == nil && s.operator.hasEnded() {
		err = fmt.Errorf("the operator ended while the benchmark waited for %s", what)
	}
	return err
}

// await polls this process, which costs nobody else anything.
func await(ctx context.Context, what string, ok func() bool) error {
	for begun := time.Now(); !ok(); {
		if time.Since(begun) > patience {
			return fmt.Errorf("the benchmark waited %s for %s", patience, what)
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
