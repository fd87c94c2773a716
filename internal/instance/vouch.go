package instance

import (
	"context"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// voucher asks the other instances whether they count on this primary.
type voucher struct {
	opt Options
	log *slog.Logger
	tls *tlsFiles
	by  vouched
	// peers are the standing clients to the other instances.
	peers map[string]*control.Client

	mu sync.Mutex
	// vouches are the peers that count on this primary.
	vouches agent.Vouches
}

// vouched is what a voucher asks of its manager.
type vouched interface {
	facts() *agent.Facts
}

func newVoucher(m *manager) *voucher {
	return &voucher{opt: m.opt, log: m.log, tls: m.tls, by: m, peers: map[string]*control.Client{}}
}

// note notes that an instance has vouched when it was asked at a moment.
func (v *voucher) note(epoch int64, instance string, at time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.vouches.Note(epoch, instance, at)
}

// given are the vouches that count in a Cluster.
func (v *voucher) given(c *agent.Cluster) []agent.Given {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.vouches.Of(c)
}

// left is what a new binary is left of vouches, and inherit the reverse.
func (v *voucher) left() handoverVouches {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := handoverVouches{Epoch: v.vouches.Epoch, Last: map[string]ticks{}}
	for name, at := range v.vouches.Last {
		out.Last[name] = ticksOf(at)
	}
	return out
}

func (v *voucher) inherit(l handoverVouches) {
	for name, at := range l.Last {
		v.note(l.Epoch, name, at.time())
	}
}

// Vouch answers a primary.
func (v *voucher) Vouch(_ context.Context, instance string, epoch int64) error {
	if no := agent.Vouch(v.by.facts(), instance, epoch); no != nil {
		return refusal(no.Reason, "%s", no.Message)
	}
	return nil
}

// keepVouched asks every peer once a second whether it counts on this primary.
func (v *voucher) keepVouched(ctx context.Context) {
	tick := newTicker(core.VouchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			tick.again()
		}
		f := v.by.facts()
		if !f.NeedsVouches() {
			continue
		}
		v.askPeers(ctx, f)
	}
}

// askPeers asks all side by side: one that does not answer holds up none.
func (v *voucher) askPeers(ctx context.Context, f *agent.Facts) {
	ctx, cancel := context.WithTimeout(ctx, core.VouchEvery)
	defer cancel()
	var wait sync.WaitGroup
	for _, name := range f.Cluster.Names {
		if name == f.Me {
			continue
		}
		client, err := v.peer(name)
		if err != nil {
			v.log.Warn("cannot ask an instance to vouch for this primary", "peer", name, "error", err)
			continue
		}
		wait.Go(func() {
			at, epoch := time.Now(), f.Cluster.Promotion.Epoch
			if err := client.Vouch(ctx, f.Me, epoch); err == nil {
				v.note(epoch, name, at)
			}
		})
	}
	wait.Wait()
}

// peer is the standing client to another instance.
func (v *voucher) peer(name string) (*control.Client, error) {
	if c := v.peers[name]; c != nil {
		return c, nil
	}
	host := v.opt.Peer(name)
	conf, err := v.tls.dial(host)
	if err != nil {
		return nil, err
	}
	v.peers[name] = control.NewClient(net.JoinHostPort(host, strconv.Itoa(v.opt.ControlPort)), conf)
	return v.peers[name], nil
}
