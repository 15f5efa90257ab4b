package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/bench"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// span is the address range, as in the published figures.
const span = device.TiB - unit

// patience is how long a driver may take for one run.
const patience = 5 * time.Minute

// racer is an allocator behind its driver.
type racer struct {
	name    string
	command []string // in front of the name of the file of operations
}

// run is the outcome of one racer on one workload.
type run struct {
	Allocator string `json:"allocator"`  // name of the driver or strategy
	About     string `json:"about"`      // the driver's description of itself
	ByAddress bool   `json:"by_address"` // frees a block by its address alone
	bench.Load
	bench.Timing
	Ratio        float64     `json:"ratio_to_first"`     // median / median of the first
	RatioOfMin   float64     `json:"min_ratio_to_first"` // the same of the minima
	Address      device.Size `json:"address_bytes"`      // highest end of a block
	AddressRatio float64     `json:"address_ratio"`      // the same / peak live bytes
	// growth of the heap until the churn / most live blocks; 0: unknown
	HeapPerBlock float64 `json:"heap_bytes_per_block"`
	Counts       *counts `json:"counts,omitempty"` // of a pair, if they were asked for
}

// race runs everything on one workload, interleaved. With count it counts before the rounds.
func race(w workload.Workload, racers []racer, rounds int, count bool) (runs []run, err error) {
	p := w.Program()
	o := operationsOf(p, span)
	dir, err := os.MkdirTemp("", "race")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "operations")
	if err := o.write(file); err != nil {
		return nil, err
	}
	load := bench.Load{
		Workload: w.Shape().Name, Params: w.Params(), Hash: p.Summary.Hash, Live: p.Summary.PeakBlocks,
		Pairs: p.Summary.Pairs, PeakLive: p.Summary.PeakLive, Device: span,
	}
	runs = make([]run, len(racers))
	for i, r := range racers {
		if runs[i], err = r.placed(o, load, file, filepath.Join(dir, "placements")); err != nil {
			return nil, fmt.Errorf("%s on %s: %w", r.name, w, err)
		}
		if !count {
			continue
		}
		if runs[i].Counts, err = r.counted(o, dir); err != nil {
			return nil, fmt.Errorf("counting %s on %s: %w", r.name, w, err)
		}
	}
	for range rounds {
		for i, r := range racers {
			if err := r.timed(&runs[i], file); err != nil {
				return nil, fmt.Errorf("%s on %s: %w", r.name, w, err)
			}
		}
	}
	for i := range runs {
		r := &runs[i]
		r.Timing = bench.TimingOf(r.Rounds)
		r.Ratio, r.RatioOfMin = r.Median/runs[0].Median, r.Min/runs[0].Min
	}
	return runs, nil
}

// placed has the driver write its placements and judges them.
func (r racer) placed(o operations, load bench.Load, file, placements string) (run, error) {
	out, err := r.runDriver(load.Hash, file, placements)
	if err != nil {
		return run{}, err
	}
	b, err := os.ReadFile(placements)
	if err != nil {
		return run{}, err
	}
	if err := os.Remove(placements); err != nil { // so that it is not taken for the placements of the next driver
		return run{}, err
	}
	top, err := judge(o, wordsOf(b))
	if err != nil {
		return run{}, err
	}
	return run{
		Allocator: r.name, About: out.About, ByAddress: out.ByAddress, Load: load,
		Address: top, AddressRatio: float64(top) / float64(load.PeakLive),
	}, nil
}

func (r racer) timed(to *run, file string) error {
	out, err := r.runDriver(to.Hash, file)
	if err != nil {
		return err
	}
	if out.NS <= 0 {
		return fmt.Errorf("a churn of %d ns", out.NS)
	}
	to.Rounds = append(to.Rounds, float64(out.NS)/float64(to.Pairs))
	to.HeapPerBlock = float64(out.Heap) / float64(to.Live)
	return nil
}

// runDriver runs the driver once. It fails if the driver read operations with another hash.
func (r racer) runDriver(want workload.Hash, files ...string) (out reply, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	command := slices.Concat(r.command, files)
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil || stderr.Len() > 0 {
		return out, fmt.Errorf("driver: %v: %s", err, firstLine(stderr.String()))
	}
	if err := json.Unmarshal(stdout.Bytes(), &out); err != nil {
		return out, fmt.Errorf("driver: %w", err)
	}
	if out.Hash != want {
		return out, fmt.Errorf("driver: read operations of hash %v, not %v", out.Hash, want)
	}
	return out, nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
