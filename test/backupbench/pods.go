package main

import (
	"context"
	"errors"

	"cnmsql.co/test/shares"
)

// pods are the control groups of the primary, the Job and the S3 server, as their Pods have them.
type pods struct{ server, job, store *shares.Share }

// weigh has each count as much as a Pod that requests so many thousandths of a core.
func (p pods) weigh(server, job int) error {
	return errors.Join(p.server.Weigh(server), p.job.Weigh(job), p.store.Weigh(server))
}

// commitsOfPods measures inserts on a primary that is backed up itself, in a Pod on the cores that the
// Pods of the Job and of the S3 server have, too. It leaves the primary in its control group: nothing
// else is measured afterwards.
func (s *stage) commitsOfPods(ctx context.Context) error {
	p, err := s.intoPods()
	if err != nil {
		return err
	}
	if err := errors.Join(p.weigh(0, 0), s.commitsAlone(ctx, "of Pods, ")); err != nil {
		return err
	}
	for _, of := range []struct {
		what        string
		server, job int // thousandths of a core that they request
	}{
		{"of Pods that request no CPU, ", 0, 0},
		{"of Pods, of which the primary's requests ten times as much CPU, ", 1000, 100},
	} {
		err := errors.Join(p.weigh(of.server, of.job),
			s.commitsDuring(ctx, of.what+"during a backup", s.donor, p.job))
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) intoPods() (p pods, err error) {
	for _, one := range []struct {
		name string
		at   **shares.Share
		pid  int
	}{{"server", &p.server, s.donor.PID()}, {"store", &p.store, s.s3.PID()}, {"job", &p.job, 0}} {
		share, err := shares.New("backupbench", one.name)
		if err != nil {
			return p, err
		}
		*one.at, s.pods = share, append(s.pods, share)
		if one.pid != 0 {
			err = share.Take(one.pid)
		}
		if err != nil {
			return p, err
		}
	}
	return p, nil
}
