package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/vramyard/vramyard/harness/study/bench"
	"github.com/vramyard/vramyard/internal/units"
)

// schema names the form of a report in JSON.
const schema = "vramyard-race/1"

// report is the outcome of a race.
type report struct {
	Schema  string        `json:"schema"`  // the constant schema
	Commit  string        `json:"commit"`  // of this repository; with suffix "-dirty" if files differ
	Machine bench.Machine `json:"machine"` // machine of the measurement
	Caches  []string      `json:"caches"`  // of its first CPU, the nearest first
	Rounds  int           `json:"rounds"`  // interleaved runs of each allocator
	Runs    []run         `json:"runs"`    // by workload, then by allocator
}

func (r report) tables(w io.Writer) error {
	fmt.Fprintf(w, "%d interleaved rounds, each run a process of its own; CPU time of the thread\n", r.Rounds)
	fmt.Fprintf(w, "%s on %s/%s, %d CPUs, %s; caches %s; commit %s\n", r.Machine.Go, r.Machine.OS, r.Machine.Arch,
		r.Machine.CPUs, r.Machine.CPU, strings.Join(r.Caches, ", "), r.Commit)
	for rest := r.Runs; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Hash == rest[0].Hash {
			n++
		}
		if err := tableOf(w, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	_, err := fmt.Fprintln(w, "\n* frees by a handle or reference of the block; the others look the block up by address")
	return err
}

func tableOf(w io.Writer, runs []run) error {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	head := table.Row{"allocator", "ns/pair", "min", "spread", "ratio", "ratio of min", "address", "heap B"}
	if runs[0].Counts != nil {
		head = append(head, "instructions", "miss 32K", "miss 1M")
	}
	var right []table.ColumnConfig
	for c := 2; c <= len(head); c++ {
		right = append(right, table.ColumnConfig{Number: c, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.AppendHeader(append(head, "about"))
	t.SetColumnConfigs(right)
	for _, r := range runs {
		name := r.Allocator
		if !r.ByAddress {
			name += " *"
		}
		heap := "—"
		if r.HeapPerBlock > 0 {
			heap = fmt.Sprintf("%.0f", r.HeapPerBlock)
		}
		row := table.Row{
			name, fmt.Sprintf("%.1f", r.Median), fmt.Sprintf("%.1f", r.Min), fmt.Sprintf("%.0f %%", 100*r.Spread()),
			fmt.Sprintf("%.2f", r.Ratio), fmt.Sprintf("%.2f", r.RatioOfMin),
			fmt.Sprintf("%.4f", r.AddressRatio), heap,
		}
		if c := r.Counts; c != nil {
			row = append(row, fmt.Sprintf("%.0f", c.Instructions), fmt.Sprintf("%.1f", c.Near), fmt.Sprintf("%.1f", c.Far))
		}
		t.AppendRow(append(row, r.About))
	}
	l := runs[0].Load
	_, err := fmt.Fprintf(w, "\n%s: %d blocks live, %s at most; %d pairs timed, hash %v; range of %s\n%s\n",
		l.Workload, l.Live, units.Bytes(l.PeakLive), l.Pairs, l.Hash, units.Bytes(l.Device), t.Render())
	return err
}

// caches describes the caches of the first CPU on Linux: "L1 Data 32K".
func caches() (all []string) {
	folders, err := filepath.Glob("/sys/devices/system/cpu/cpu0/cache/index*")
	if err != nil {
		return nil
	}
	for _, folder := range folders {
		var words []string
		for _, name := range []string{"level", "type", "size"} {
			b, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil {
				return nil
			}
			words = append(words, strings.TrimSpace(string(b)))
		}
		all = append(all, "L"+strings.Join(words, " "))
	}
	return all
}
