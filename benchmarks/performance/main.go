// Command performance takes the figures of docs/performance.md and writes its tables and plots.
//
// It runs the steps that it is asked for, in this order:
//
//	times    time and memory of the strategies against live blocks
//	locked   strategies that several goroutines call
//	latency  time of a load, by the size of the buffer
//	files    programs that find the peak of a trace in Parquet, beside libraries of Python
//	lines    the cache lines that an operation touches, counted by stepping through it
//	render   the tables and plots from the raw files that the others write
//
// Every step can be run alone; "all" is all of them. A raw file names its machine and commit.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "performance:", err)
		os.Exit(1)
	}
}

// options are the options of the steps.
type options struct {
	results string // directory of the raw files
	docs    string // directory of performance.md
	rounds  int    // interleaved rounds; fewer where blocks are many
	most    int    // live blocks beyond which nothing is measured
	log     io.Writer
}

// step is a part of the command that can be run alone.
type step struct {
	name string
	run  func(options) error
}

func steps() []step {
	return []step{
		{"times", takeTimes}, {"locked", takeLocked}, {"latency", takeLatency}, {"files", takeFiles},
		{"lines", takeLines}, {"render", render},
	}
}

func run(args []string, stdout io.Writer) error {
	if len(args) > 0 && args[0] == tracedCommand {
		return traced(args[1:])
	}
	o := options{log: stdout}
	fl := flag.NewFlagSet("performance", flag.ContinueOnError)
	fl.SetOutput(io.Discard) // an error is one line; help is printed below
	fl.StringVar(&o.results, "results", "../results", "`directory` of the raw files")
	fl.StringVar(&o.docs, "docs", "../../docs", "`directory` of performance.md and its plots")
	fl.IntVar(&o.rounds, "rounds", 9, "interleaved rounds; a third of them for 1e7 live blocks")
	fl.IntVar(&o.most, "most", 10_000_000, "measure no more live blocks than `n`")
	if err := fl.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fl.SetOutput(stdout)
			fmt.Fprintf(stdout, "performance [flags] STEP...: times, locked, latency, files, lines, render, or all\n")
			fl.PrintDefaults()
			return nil
		}
		return err
	}
	switch {
	case o.rounds < 1:
		return errors.New("--rounds: want at least 1")
	case o.most < live[0]:
		return errors.New("--most: want at least " + strconv.Itoa(live[0]))
	}
	return runSteps(fl.Args(), o)
}

// runSteps runs the named steps, each once, in the order of the command.
func runSteps(names []string, o options) error {
	var known []string
	for _, s := range steps() {
		known = append(known, s.name)
	}
	want := "want one or more of " + strings.Join(known, ", ") + ", or all"
	if len(names) == 0 {
		return errors.New("no step: " + want)
	}
	for _, n := range names {
		if n != "all" && !slices.Contains(known, n) {
			return fmt.Errorf("unknown step %q: %s", n, want)
		}
	}
	for _, s := range steps() {
		if !slices.Contains(names, s.name) && !slices.Contains(names, "all") {
			continue
		}
		if err := s.run(o); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}
