package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/device"
)

// markdown writes the result as a page. It uses only the data of the result.
func (r *Result) markdown(w io.Writer) error {
	b := bufio.NewWriter(w)
	m := r.Machine
	if r.StandIn {
		fmt.Fprintf(b, "**The driver was the stand-in of the tests: nothing here was measured on a card.**\n\n")
	}
	fmt.Fprintf(b, "# %s, %s\n\n", or(m.GPU, "No GPU"), r.Started)
	fmt.Fprintf(b, "| what | is |\n|---|---|\n")
	for _, row := range [][2]string{
		{"GPU", m.GPU}, {"memory", fmt.Sprintf("%v, %d bytes", m.Memory, uint64(m.Memory))},
		{"compute capability", m.Capability},
		{"driver", m.Driver}, {"driver for CUDA", m.CUDA}, {"no GPU", m.NoGPU},
		{"system", fmt.Sprintf("%s, %d cores", m.System, m.Cores)},
		{"Python", m.Python}, {"PyTorch", m.Torch}, {"PyTorch for CUDA", m.TorchCUDA}, {"no PyTorch", m.NoTorch},
		{"commit", r.Commit},
		{"took", fmt.Sprintf("%.0f s", r.Seconds)},
	} {
		if row[1] != "" {
			fmt.Fprintf(b, "| %s | %s |\n", row[0], cell(row[1]))
		}
	}
	fmt.Fprintf(b, "\n## Parts\n\n| part | state | s | |\n|---|---|--:|---|\n")
	for _, p := range r.Parts {
		fmt.Fprintf(b, "| %s | %s | %.1f | %s |\n", p.Name, p.State, p.Seconds, cell(p.Reason))
	}
	r.suiteText(b)
	r.timingText(b)
	r.conformanceText(b)
	r.trainingText(b)
	r.snapshotText(b)
	return b.Flush()
}

func (r *Result) suiteText(w io.Writer) {
	if r.Suite == nil {
		return
	}
	fmt.Fprintf(w, "\n## Conformance suite of devices\n\n%d tests passed, %d failed.\n", r.Suite.Passed, r.Suite.Failed)
	for _, left := range r.Suite.Left {
		fmt.Fprintf(w, "* not made: %s\n", left)
	}
}

func (r *Result) timingText(w io.Writer) {
	t := r.Timing
	if t == nil {
		return
	}
	fmt.Fprintf(w, "\n## What calls of the driver cost\n\n")
	fmt.Fprintf(w, "Medians, 10th and 90th percentiles of the calls, after %d rounds that are not counted. Each time "+
		"includes the way into the driver and back, %s. The last column is the method of `device/cuda`, with context and "+
		"bookkeeping.\n\n",
		t.Warmup, nanoseconds(t.CallOverhead))
	if !t.Complete {
		fmt.Fprintf(w, "Not all calls were timed.\n\n")
	}
	fmt.Fprintf(w, "| call | size | | calls | median | p10 | p90 | with us |\n|---|--:|---|--:|--:|--:|--:|--:|\n")
	for _, c := range t.Calls {
		size, form := "", c.Form
		if c.Size != 0 {
			size = c.Size.String()
		}
		if c.Of != 0 {
			form = "in pieces of " + c.Of.String()
		}
		fmt.Fprintf(w, "| %s | %s | %s | %d | %s | %s | %s | %s |\n", c.Call, size, form, c.Count,
			nanoseconds(c.Driver.Median),
			nanoseconds(c.Driver.P10), nanoseconds(c.Driver.P90), nanoseconds(c.Ours.Median))
	}
	for i, l := range t.Untimed {
		if i == 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "* left out: %s of %v: %s\n", l.Sequence, l.Size, oneLine(l.Reason))
	}
}

func (r *Result) conformanceText(w io.Writer) {
	if len(r.Conformance) == 0 {
		return
	}
	fmt.Fprintf(w, "\n## Strategies on the GPU\n\nSequences of 60 calls on each device that `vramyard check` chooses.\n\n"+
		"| strategy | state | sequences | |\n|---|---|--:|---|\n")
	for _, c := range r.Conformance {
		fmt.Fprintf(w, "| `%s` | %s | %d | %s |\n", c.Strategy, c.State, c.Sequences, cell(c.Reason))
	}
}

func (r *Result) trainingText(w io.Writer) {
	t := r.Training
	if t == nil {
		return
	}
	fmt.Fprintf(w, "\n## PyTorch on each strategy\n\n")
	if t.First == "" {
		fmt.Fprintln(w, "PyTorch's own allocator did not train.")
		return
	}
	fmt.Fprintf(w, "Losses of %d steps with PyTorch's own allocator, from %s to %s, ", t.Steps, t.First, t.Last)
	if !t.Repeat {
		fmt.Fprintln(w, "are not the same twice.")
		return
	}
	fmt.Fprintf(w, "twice the same. Held means: equal to them bit for bit, and with poison no freed memory was "+
		"written.\n\n"+
		"| strategy | poison | steps | state | blocks | most held | filled | compared | |\n"+
		"|---|---|--:|---|--:|--:|--:|--:|---|\n")
	for _, c := range t.Runs {
		poison, filled, compared := "", "", ""
		if c.Poison {
			poison, filled, compared = "yes", strconv.FormatUint(c.Filled, 10), strconv.FormatUint(c.Compared, 10)
		}
		if c.Blind {
			compared += ", then blind"
		}
		fmt.Fprintf(w, "| `%s` | %s | %d | %s | %d | %v | %s | %s | %s |\n", c.Strategy, poison, c.Steps, c.State, c.Blocks,
			c.Peak, filled, compared, cell(c.Reason))
	}
}

func (r *Result) snapshotText(w io.Writer) {
	if len(r.Snapshots) == 0 {
		return
	}
	fmt.Fprintf(w, "\n## Memory snapshots\n\n| file | program | steps | seed | events | bytes | `vramyard verify` |\n"+
		"|---|---|--:|--:|--:|--:|---|\n")
	for _, s := range r.Snapshots {
		fmt.Fprintf(w, "| `%s` | %s | %d | %d | %d | %d | %s |\n", s.File, cell(s.What), s.Steps, s.Seed, s.Events, s.Bytes,
			cell(s.Settled))
	}
}

// nanoseconds returns a time with three significant digits.
func nanoseconds(ns uint64) string {
	text := func(unit string, one float64) string {
		v := float64(ns) / one
		digits := 2
		for x := v; x >= 10 && digits > 0; x /= 10 {
			digits--
		}
		return strconv.FormatFloat(v, 'f', digits, 64) + " " + unit
	}
	switch {
	case ns < 1000:
		return strconv.FormatUint(ns, 10) + " ns"
	case ns < 1_000_000:
		return text("µs", 1e3)
	case ns < 1_000_000_000:
		return text("ms", 1e6)
	}
	return text("s", 1e9)
}

// cell returns a text for a cell of a table.
func cell(text string) string { return strings.ReplaceAll(oneLine(text), "|", "\\|") }

// sizes returns the range of some sizes as text.
func sizes(least, most device.Size) string {
	if least == most {
		return least.String()
	}
	return least.String() + " to " + most.String()
}
