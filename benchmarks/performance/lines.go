package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/strategies"
)

// A strategy is watched from outside: a second process of this program, the traced one, runs W1,
// and this one steps through some of its pairs, instruction by instruction, and decodes which
// bytes each of them reads or writes. So nothing is counted by hand and nothing is instrumented.
const (
	tracedCommand = "traced" // first argument of the second process
	tracedBefore  = 10_000   // pairs that run at full speed after the fill
	tracedWarm    = 50       // pairs that are stepped through first, to fill the cache model
	tracedPairs   = 100      // pairs that count
	nearLines     = 512      // lines touched last that are near: 32 KiB, a first-level cache
)

// linesFile is the raw file of the step.
type linesFile struct {
	header
	Pairs int         `json:"pairs"`      // that each figure is the mean of
	Near  int         `json:"near_lines"` // a line is far if at least this many others were touched since its last use
	Runs  []linesSeen `json:"runs"`
}

// linesSeen holds the memory accesses of the pairs of a strategy, as means of a pair.
type linesSeen struct {
	Strategy     string    `json:"strategy"`
	Live         int       `json:"live"`
	Metadata     uint64    `json:"metadata_bytes"` // of the strategy, before the pairs
	Instructions float64   `json:"instructions"`
	Unknown      float64   `json:"unknown_instructions"` // that could not be decoded; their accesses are unknown
	Lines        float64   `json:"lines"`                // different ones, the stack's included
	Far          float64   `json:"far_lines"`            // of these, the lines that are not in a first-level cache
	Places       []farFrom `json:"places"`               // that touch far lines first, most first
}

// farFrom is a line of the source that touches far lines before any other of the pair does.
type farFrom struct {
	Function string  `json:"function"` // the innermost, if calls were inlined
	File     string  `json:"file"`     // within the repository
	Line     int     `json:"line"`
	Far      float64 `json:"far_lines"`
}

// takeLines steps through pairs of the strategies over tiles.
func takeLines(o options) error {
	h, err := newHeader()
	if err != nil {
		return err
	}
	f := linesFile{header: h, Pairs: tracedPairs, Near: nearLines}
	for _, s := range []string{"tlsf", "bfc", "bestfit"} {
		for _, n := range live {
			if n > o.most {
				break
			}
			fmt.Fprintf(o.log, "stepping through %s with %d blocks\n", s, n)
			seen, err := stepThrough(s, n)
			if err != nil {
				return fmt.Errorf("%s with %d blocks: %w", s, n, err)
			}
			f.Runs = append(f.Runs, *seen)
		}
	}
	return store(o, "lines.json", f)
}

// traced is the traced process: it fills a strategy, writes its thread id, waits to be attached,
// and brackets each pair by breakpoints, which would kill it without a tracer.
func traced(args []string) error {
	if len(args) != 2 {
		return errors.New("traced is for this program only: want a strategy and a number of blocks")
	}
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	c := comparison{shape: "w1"}
	w, err := c.workload(n)
	if err != nil {
		return err
	}
	p := w.Program()
	s, err := build(args[0], p.Summary.PeakLive)
	if err != nil {
		return err
	}
	d := driver{s, make([]device.Addr, p.Summary.Slots)}
	if err := d.drive(p.Fill); err != nil {
		return err
	}
	if err := d.drive(p.Churn[:2*tracedBefore]); err != nil {
		return err
	}
	metadata, err := power.MetadataBytes(s)
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	runtime.GC()
	debug.SetGCPercent(-1) // a collection would be counted with the pair that it falls into
	fmt.Println(threadID(), uint64(metadata))
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	runtime.Gosched()        // the scheduler has just had its turn, so that it does not ask for one
	runtime.UnlockOSThread() // should it do so, the goroutine goes on here: all other threads stand still
	return d.bracketed(p.Churn[2*tracedBefore:][:2*(tracedWarm+tracedPairs)])
}

// bracketed runs pairs of a free and an allocation, each between two breakpoints.
func (d driver) bracketed(ops []workload.Op) error {
	for i := 0; i < len(ops); i += 2 {
		slot, r := ops[i].Slot(), alloc.Request{Size: ops[i+1].Size()}
		at := d.live[slot]
		runtime.Breakpoint()
		wrong := d.s.Free(at)
		b, err := d.s.Alloc(r)
		runtime.Breakpoint()
		if wrong != nil || err != nil {
			return errors.Join(wrong, err)
		}
		d.live[slot] = b.Addr
	}
	return nil
}

// build returns a strategy over a simulated device with four times the bytes that are live, as
// harness/study/bench does.
func build(name string, peak device.Size) (alloc.Strategy, error) {
	setup, err := strategies.All().Lookup(name, nil)
	if err != nil {
		return nil, err
	}
	capacity := device.AlignUp(4*peak, device.GiB)
	dev, err := sim.New(sim.Config{Capacity: capacity})
	if err != nil {
		return nil, err
	}
	return setup.ForCapacity(capacity).New(dev)
}

// driver runs operations over slots of its own.
type driver struct {
	s    alloc.Strategy
	live []device.Addr // by slot
}

// drive runs operations until one is refused.
func (d driver) drive(ops []workload.Op) error {
	for _, op := range ops {
		size := op.Size()
		if size == 0 {
			if err := d.s.Free(d.live[op.Slot()]); err != nil {
				return err
			}
			continue
		}
		b, err := d.s.Alloc(alloc.Request{Size: size})
		if err != nil {
			return err
		}
		d.live[op.Slot()] = b.Addr
	}
	return nil
}
