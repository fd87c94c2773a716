// Command sim runs the simulation of internal/sim: seed after seed, until there
// are enough or the time is over, and tells the story of the first that fails.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"cnmsql.co/internal/sim"
)

func main() {
	seeds := flag.Int("seeds", 1000, "how many seeds to run")
	from := flag.Uint64("from", 0, "the first seed")
	limit := flag.Duration("for", 0, "run for this long instead of a number of seeds")
	tell := flag.Bool("tell", false, "tell the story of the seed -from, whatever comes of it")
	stories := flag.Int("stories", 1, "how many stories of failing seeds to tell")
	table := flag.Bool("coverage", true, "print what was reached")
	flag.Parse()
	if *tell {
		r := sim.Tell(*from)
		for _, line := range r.Story {
			fmt.Println(line)
		}
		return
	}
	os.Exit(run(*from, *seeds, *limit, *stories, *table))
}

func run(from uint64, seeds int, limit time.Duration, stories int, table bool) int {
	cover := sim.Coverage{}
	began := time.Now()
	var simulated time.Duration
	done, violations := 0, 0
	for ; limit > 0 && time.Since(began) < limit || limit == 0 && done < seeds; done++ {
		r := sim.Run(from+uint64(done), cover)
		simulated += r.Simulated
		if r.Violation == nil {
			continue
		}
		violations++
		fmt.Printf("seed %d: %s\n", r.Seed, r.Violation)
		if violations <= stories {
			for _, line := range sim.Shrink(r).Story {
				fmt.Println("    " + line)
			}
		}
	}
	took := time.Since(began)
	if table {
		cover.Print(os.Stdout)
	}
	fmt.Printf("sim: %d seeds, %.0f cluster-minutes, %d violations, %.1f seeds/s\n", done, simulated.Minutes(), violations, float64(done)/took.Seconds())
	if violations > 0 {
		return 1
	}
	return 0
}
