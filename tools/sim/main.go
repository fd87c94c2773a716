// Command sim runs the simulation of internal/sim: seed after seed on all cores,
// until there are enough or the time is over, and tells the story of the first that
// fails. It ends on one line:
//
//	sim: N seeds, M cluster-minutes, V violations, S seeds/s
//
// and with status 1 if V is not 0, or if enough seeds did not reach all they have to.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"cnmsql.co/internal/sim"
)

// enough seeds reach every diagnosis, proof and step.
const enough = 20000

func main() {
	o := options{}
	flag.IntVar(&o.seeds, "seeds", 1000, "how many seeds to run")
	flag.Uint64Var(&o.from, "from", 0, "the first seed")
	flag.DurationVar(&o.limit, "for", 0, "run for this long instead of a number of seeds")
	flag.IntVar(&o.stories, "stories", 1, "how many stories of failing seeds to tell, shrunk")
	flag.IntVar(&o.workers, "workers", runtime.NumCPU(), "how many seeds to run at a time")
	flag.BoolVar(&o.table, "coverage", true, "print what was reached")
	tell := flag.Bool("tell", false, "tell the story of the seed -from, whatever comes of it")
	flag.Parse()
	if *tell {
		for _, line := range sim.Tell(o.from).Story {
			fmt.Println(line)
		}
		return
	}
	debug.SetGCPercent(800) // a world is small and gone soon
	os.Exit(run(o))
}

type options struct {
	from    uint64
	seeds   int
	limit   time.Duration
	stories int
	workers int
	table   bool
	began   time.Time
}

// total is what came of all seeds.
type total struct {
	mu         sync.Mutex
	cover      sim.Coverage
	simulated  time.Duration
	seeds      int
	violations int
}

func run(o options) int {
	o.began = time.Now()
	t := &total{cover: sim.Coverage{}}
	var next atomic.Uint64
	var all sync.WaitGroup
	for range o.workers {
		all.Go(func() {
			for {
				n := next.Add(1) - 1
				if o.limit == 0 && n >= uint64(o.seeds) || o.limit > 0 && time.Since(o.began) >= o.limit {
					return
				}
				t.play(o, o.from+n)
			}
		})
	}
	all.Wait()
	return t.end(o)
}

// play runs one seed. What a seed does depends on nothing but the seed.
func (t *total) play(o options, seed uint64) {
	cover := sim.Coverage{}
	r := sim.Run(seed, cover)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cover.Add(cover)
	t.simulated += r.Simulated
	t.seeds++
	if t.seeds%5000 == 0 {
		fmt.Fprintf(os.Stderr, "%d seeds, %d violations, %.1f seeds/s\n", t.seeds, t.violations,
			float64(t.seeds)/time.Since(o.began).Seconds())
	}
	if r.Violation == nil {
		return
	}
	t.violations++
	fmt.Printf("seed %d: %s\n", r.Seed, r.Violation)
	if t.violations <= o.stories {
		small := sim.Shrink(r)
		for _, line := range small.Story {
			fmt.Println("    " + line)
		}
		fmt.Printf("\nThe operator's decisions, for internal/core/async/testdata:\n\n%s\n", small.Script)
	}
}

func (t *total) end(o options) int {
	if o.table {
		t.cover.Print(os.Stdout)
	}
	missing := t.cover.Missing()
	if t.seeds >= enough {
		for _, what := range missing {
			fmt.Printf("not reached: %s\n", what)
		}
	} else {
		missing = nil
	}
	fmt.Printf("sim: %d seeds, %.0f cluster-minutes, %d violations, %.1f seeds/s\n",
		t.seeds, t.simulated.Minutes(), t.violations, float64(t.seeds)/time.Since(o.began).Seconds())
	if t.violations > 0 || len(missing) > 0 {
		return 1
	}
	return 0
}
