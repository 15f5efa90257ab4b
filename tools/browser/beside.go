package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// beside holds the arguments of a race against PyTorch's memory viewer.
type beside struct {
	viz      string // folder of the viewer
	program  string // vramyard
	dir      string // for pages
	shots    string // where pictures of the windows go, or nothing
	strategy string // which ours replays through
	rounds   int
	limit    time.Duration // for one opening
}

// opening is the time until the first picture and the memory of the tab.
type opening struct {
	before  float64 // seconds until the page was there that the snapshot is given to
	seconds float64
	cpu     float64 // seconds of the processor that the tab took, which other programs do not lengthen
	bytes   int64   // most that the process of the tab held in memory
	died    error   // why there is no picture
}

// way is one way to look at a snapshot.
type way struct {
	name    string
	prepare func(ctx context.Context, t *tab) error // before the clock runs; may be nil
	load    func(ctx context.Context, t *tab) error // until the page says that it has drawn
	after   func()                                  // when the clock has stopped; may be nil
	took    []opening
}

// besideMain measures what its arguments say and prints the table.
func besideMain(ctx context.Context, words []string) error {
	var b beside
	flags := flag.NewFlagSet("browser beside", flag.ContinueOnError)
	flags.IntVar(&b.rounds, "rounds", 5, "how often everything is opened")
	flags.DurationVar(&b.limit, "limit", 2*time.Minute, "when a tab without a picture is given up")
	flags.StringVar(&b.strategy, "strategy", "caching", "what ours replays the snapshots through")
	flags.StringVar(&b.shots, "shots", "", "folder for a picture of each window")
	flags.StringVar(&b.program, "vramyard", "", "program of ours; built if it is not named")
	if err := flags.Parse(words); err != nil {
		return err
	}
	if flags.NArg() < 2 || b.rounds < 1 {
		return errors.New("usage: browser beside [flags] VIZ SNAPSHOT... (browser beside --help lists the flags)")
	}
	b.viz = flags.Arg(0)
	var err error
	if b.dir, err = os.MkdirTemp("", "vramyard"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if b.program == "" {
		if b.program, err = build(ctx, b.dir); err != nil {
			return err
		}
	}
	return b.race(ctx, os.Stdout, os.Stderr, flags.Args()[1:])
}

// race opens every snapshot in all ways, interleaved, and writes a table row for each. A way that
// crashed is not retried.
func (b beside) race(ctx context.Context, table, progress io.Writer, snapshots []string) error {
	fmt.Fprintln(table, "| snapshot | MB | viewer's own page, s | snapshot in it, s | tab, MB | page written, s | page, "+
		"MB | page opened, s | tab, MB | `view`, s | tab, MB |")
	fmt.Fprintln(table, "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, snapshot := range snapshots {
		snapshot, err := filepath.Abs(snapshot)
		if err != nil {
			return err
		}
		file, err := os.Stat(snapshot)
		if err != nil {
			return err
		}
		start := time.Now()
		path, err := report(ctx, b.program, b.dir, "page", "replay", "--strategy", b.strategy, snapshot)
		if err != nil {
			return err
		}
		written := time.Since(start)
		html, err := os.Stat(path)
		if err != nil {
			return err
		}
		ways := []way{b.official(snapshot), {name: "page", load: show("file://" + path)}, b.view(snapshot)}
		for round := range b.rounds {
			for i := range ways {
				w := &ways[i]
				if len(w.took) > 0 && w.took[len(w.took)-1].died != nil {
					continue
				}
				o, err := b.open(ctx, strings.TrimSuffix(filepath.Base(snapshot), ".pickle"), *w)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", snapshot, w.name, err)
				}
				w.took = append(w.took, o)
				fmt.Fprintf(progress, "%s, round %d, %s: %.2f s and %.2f s, %.2f s of the processor, %.0f MB",
					filepath.Base(snapshot), round+1, w.name, o.before, o.seconds, o.cpu, float64(o.bytes)/1e6)
				if o.died != nil {
					fmt.Fprintf(progress, ", no picture: %v", o.died)
				}
				fmt.Fprintln(progress)
			}
		}
		fmt.Fprintf(table, "| `%s` | %.1f | %s | %s | %.2f | %.1f | %s | %s |\n", filepath.Base(snapshot),
			float64(file.Size())/1e6,
			leastAndMiddle(ways[0].took, func(o opening) float64 { return o.before }), cells(ways[0].took), written.Seconds(),
			float64(html.Size())/1e6, cells(ways[1].took), cells(ways[2].took))
	}
	return nil
}

// cells returns the least and the middle of the times, and the most memory.
func cells(took []opening) string {
	var most int64
	for _, o := range took {
		most = max(most, o.bytes)
		if o.died != nil {
			return fmt.Sprintf("none: %v | %.0f", o.died, float64(most)/1e6)
		}
	}
	return fmt.Sprintf("%s | %.0f", leastAndMiddle(took, func(o opening) float64 { return o.seconds }), float64(most)/1e6)
}

// leastAndMiddle returns the least and the middle of some seconds.
func leastAndMiddle(took []opening, of func(opening) float64) string {
	var seconds []float64
	for _, o := range took {
		seconds = append(seconds, of(o))
	}
	slices.Sort(seconds)
	return fmt.Sprintf("%.2f, %.2f", seconds[0], seconds[len(seconds)/2])
}
