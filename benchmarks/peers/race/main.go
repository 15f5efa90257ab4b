package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/vramyard/vramyard/harness/study/bench"
	"github.com/vramyard/vramyard/internal/fileio"
)

func main() {
	err := command(os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "race:", firstLine(err.Error()))
		os.Exit(1)
	}
}

// command executes the command line. The word drive in front makes the program a driver.
func command(args []string, stdout io.Writer) error {
	if len(args) > 2 && args[0] == "drive" {
		r, err := drive(args[1], args[2], strings.Join(args[3:], ""))
		if err != nil {
			return err
		}
		return json.NewEncoder(stdout).Encode(r)
	}
	fl := flag.NewFlagSet("race", flag.ContinueOnError)
	fl.SetOutput(io.Discard) // an error is one line; help is printed below
	ours := fl.String("strategies", "tlsf,tlsf*,bfc,bfc*,bestfit,bestfit*,memutils", "what this program drives "+
		"itself, separated by `commas`, with * if it frees by reference; ratios are to the first")
	drivers := fl.String("drivers", "", "`folder` whose executable files are drivers")
	chosen := bench.Selection{Steps: 300, Seed: 42}
	fl.StringVar(&chosen.Workloads, "workloads", "w1", "workloads, separated by `commas`")
	fl.StringVar(&chosen.Live, "live", "1000,10000,100000,1000000", "numbers of live blocks, separated by `commas`")
	fl.IntVar(&chosen.Pairs, "pairs", 1_000_000, "pairs that are timed in each run, but for w2")
	rounds := fl.Int("rounds", 9, "interleaved runs of each allocator")
	count := fl.Bool("counts", false, "also count instructions and cache misses, with valgrind")
	file := fl.String("json", "", "also write all figures as JSON to this `file`")
	if err := fl.Parse(args); errors.Is(err, flag.ErrHelp) {
		fl.SetOutput(stdout)
		fl.Usage()
		return nil
	} else if err != nil {
		return err
	}
	switch {
	case fl.NArg() > 0:
		return fmt.Errorf("unexpected %q", fl.Arg(0))
	case *rounds < 1:
		return errors.New("--rounds: want at least 1")
	}
	racers, err := field(*ours, *drivers)
	if err != nil {
		return err
	}
	r := report{Schema: schema, Commit: commit(), Machine: bench.ThisMachine(), Caches: caches(), Rounds: *rounds}
	if err := r.fill(chosen, racers, *count); err != nil {
		return err
	}
	if *file != "" {
		err := fileio.Write(*file, stdout, func(w io.Writer) error {
			e := json.NewEncoder(w)
			e.SetIndent("", "  ")
			return e.Encode(r)
		})
		if err != nil {
			return err
		}
	}
	return r.tables(stdout)
}

// field returns all racers: strategies, then drivers by name.
func field(ours, folder string) (all []racer, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(ours, ",") {
		shown := strings.TrimSuffix(name, byReference)
		if _, err := catalogue().Lookup(shown, nil); err != nil {
			return nil, err
		}
		all = append(all, racer{shown, []string{self, "drive", name}})
	}
	if folder == "" {
		return all, nil
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if info, err := f.Info(); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			path, err := filepath.Abs(filepath.Join(folder, f.Name()))
			if err != nil {
				return nil, err
			}
			all = append(all, racer{f.Name(), []string{path}})
		}
	}
	return all, nil
}

// fill races everything on each workload.
func (r *report) fill(chosen bench.Selection, racers []racer, count bool) error {
	workloads, err := chosen.Resolve()
	if err != nil {
		return err
	}
	for _, w := range workloads {
		runs, err := race(w, racers, r.Rounds, count)
		if err != nil {
			return err
		}
		r.Runs = append(r.Runs, runs...)
	}
	return nil
}

// commit returns the commit of the tree that the program runs in, or "".
func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=12").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
