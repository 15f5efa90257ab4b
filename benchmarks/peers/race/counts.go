package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/harness/trace/workload"
)

// Counting runs a driver twice in valgrind, which simulates a processor. Both files have the same
// operations, and between them two requests for half of the range each, of which one is refused and
// ends the driver: in the second run after more pairs. So everything but these pairs cancels out.
const (
	countedFrom = 10_000 // pairs before the refusal in the first run, a sixth of a shorter churn
	countedTo   = 60_000 // pairs in the second run
)

// counter is the command in front of a driver. The caches are the same on every machine: one of
// 32 KiB, as nearest to a core, and one of 1 MiB.
var counter = []string{
	"valgrind", "--tool=cachegrind", "--cachegrind-out-file=/dev/null", "--cache-sim=yes",
	"--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,16,64",
}

// counts are what a pair costs on the processor of valgrind, the loop over the operations included.
type counts struct {
	Instructions float64 `json:"instructions"`
	Near         float64 `json:"misses_32_kib"` // loads and stores that miss the cache of 32 KiB
	Far          float64 `json:"misses_1_mib"`  // these that miss the cache of 1 MiB too
}

// tallies finds the three counts in the summary of valgrind.
var tallies = []*regexp.Regexp{
	regexp.MustCompile(`I +refs: +([\d,]+)`), regexp.MustCompile(`D1 +misses: +([\d,]+)`),
	regexp.MustCompile(`LLd +misses: +([\d,]+)`),
}

// counted runs the driver of a racer in valgrind.
func (r racer) counted(o operations, dir string) (*counts, error) {
	to := min(countedTo, len(o.churn)/2)
	from := min(countedFrom, to/6)
	o.churn = o.churn[:2*to]
	few, err := r.tally(o, from, dir)
	if err != nil {
		return nil, err
	}
	many, err := r.tally(o, to, dir)
	if err != nil {
		return nil, err
	}
	for i := range many {
		many[i] = (many[i] - few[i]) / float64(to-from)
	}
	return &counts{many[0], many[1], many[2]}, nil
}

// tally returns the counts of a run that ends after some pairs of the churn.
func (r racer) tally(o operations, pairs int, dir string) (all []float64, err error) {
	file, summary := filepath.Join(dir, "counted"), filepath.Join(dir, "summary")
	o.churn = slices.Insert(slices.Clone(o.churn), 2*pairs, workload.Op(workload.MaxSize), workload.Op(workload.MaxSize))
	if err := o.write(file); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	command := slices.Concat(counter, []string{"--log-file=" + summary}, r.command, []string{file})
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=off") // what a Go runtime does beside is not counted
	var exit *exec.ExitError
	err = c.Run()
	if err == nil {
		return nil, errors.New("the driver grants the whole range beside live blocks: want an exit status other than 0")
	} else if !errors.As(err, &exit) {
		return nil, err
	}
	text, err := os.ReadFile(summary)
	if err != nil {
		return nil, err
	}
	for _, t := range tallies {
		m := t.FindSubmatch(text)
		if m == nil {
			return nil, fmt.Errorf("valgrind: %v: no counts, %q is missing", exit, t)
		}
		n, err := strconv.ParseFloat(strings.ReplaceAll(string(m[1]), ",", ""), 64)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}
