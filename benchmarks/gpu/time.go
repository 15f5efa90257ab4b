package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/cuda"
	"github.com/vramyard/vramyard/internal/fileio"
)

// timeCommand is the command by which run starts the timing in a separate process, which may
// crash.
const timeCommand = "time-calls"

// Timing is the cost of driver calls.
type Timing struct {
	// Complete reports that every call sequence was run. The figures of completed call sequences
	// are valid either way.
	Complete bool `json:"complete"`
	// CallOverhead is the time of an empty driver call, median of rounds of a thousand. It is part of
	// every figure.
	CallOverhead uint64      `json:"crossing_ns"`
	Granularity  device.Size `json:"granularity_bytes"` // of virtual memory, 0 without the capability
	Largest      device.Size `json:"largest_bytes"`     // that was asked for
	Warmup       int         `json:"warmup"`            // rounds of each call sequence that are not counted
	Calls        []Timed     `json:"calls"`             // in the order of the call sequences
	Untimed      []Untimed   `json:"left_out"`          // what could not be timed
}

// Timed is one kind of call with one size.
type Timed struct {
	Call string      `json:"call"`        // its kind, as package device names it
	Size device.Size `json:"size_bytes"`  // that the call is about; 0 if it is about none
	Of   device.Size `json:"piece_bytes"` // of a mapping, where several make up the size; 0 if it is one
	Form string      `json:"form"`        // "warm": from a pool with free memory; "cold": from an empty one
	// Count is the number of measured calls.
	Count int `json:"count"`
	// Driver is the time of the driver calls alone.
	Driver Spread `json:"driver"`
	// Ours is the time of the method of device/cuda from entry to return: context, bookkeeping and
	// account included.
	Ours Spread `json:"with_us"`
}

// Spread summarizes durations in nanoseconds: each figure is a measured value.
type Spread struct {
	Median uint64 `json:"median_ns"` // half took at most this long
	P10    uint64 `json:"p10_ns"`    // a tenth took at most this long
	P90    uint64 `json:"p90_ns"`    // nine tenths took at most this long
}

// Untimed is a size that was not timed.
type Untimed struct {
	Sequence string      `json:"course"`     // the calls that belong together
	Size     device.Size `json:"size_bytes"` // that they were about
	Reason   string      `json:"reason"`     // the driver's error
	// Memory reports that the GPU had too little memory, which is not a failure.
	Memory bool `json:"out_of_memory"`
}

// Limits of a call sequence.
const (
	warmup     = 3   // rounds that are not counted
	mostRounds = 200 // counted rounds at most
	fewest     = 5   // counted rounds at least, even beyond the time budget
)

// timeAll times calls on cuda:0 and writes the results so far after each call sequence.
func timeAll(args []string) error {
	var path string
	var budget time.Duration
	largest := 8 * device.GiB
	fl := flag.NewFlagSet(timeCommand, flag.ContinueOnError)
	fl.SetOutput(io.Discard)
	fl.StringVar(&path, "out", "", "")
	fl.DurationVar(&budget, "budget", time.Minute, "")
	fl.Func("largest", "", func(text string) (err error) { largest, err = device.ParseSize(text); return err })
	if err := fl.Parse(args); err != nil {
		return err
	}
	d, err := cuda.Open(cuda.Config{})
	if err != nil {
		return err
	}
	defer d.Close() // it holds nothing
	t := Timing{Warmup: warmup, Granularity: d.Granularity(), Calls: []Timed{}, Untimed: []Untimed{}}
	if t.Largest, err = bounded(d, largest); err != nil {
		return err
	}
	if t.CallOverhead, err = callOverhead(d); err != nil {
		return err
	}
	all := callSequences(d, t.Largest)
	for i, c := range all {
		c.run(&t, budget/time.Duration(len(all)))
		t.Complete = i == len(all)-1
		if err := fileio.Write(path, nil, func(w io.Writer) error { return json.NewEncoder(w).Encode(&t) }); err != nil {
			return err
		}
	}
	for _, l := range t.Untimed {
		if !l.Memory {
			return fmt.Errorf("%s of %v: %s", l.Sequence, l.Size, l.Reason)
		}
	}
	return nil
}

// bounded returns n, or the maximum size for a call sequence on the GPU: it holds at most twice
// its size, and a driver keeps some freed memory for a while.
func bounded(d *cuda.Device, n device.Size) (device.Size, error) {
	free, _, err := d.MemoryInfo()
	if err != nil {
		return 0, err
	}
	return min(n, free/8), nil
}

// callOverhead returns the time of an empty call.
func callOverhead(d *cuda.Device) (uint64, error) {
	const calls = 1000
	var all []time.Duration
	for range warmup + 9 {
		took, err := d.CallOverhead(calls)
		if err != nil {
			return 0, err
		}
		all = append(all, took/calls)
	}
	return spread(all[warmup:]).Median, nil
}

// key identifies a kind of measurement.
type key struct {
	call     device.Call
	size, of device.Size
	form     string
}

// durations are the calls of one key.
type durations struct {
	key
	driver, ours []time.Duration
}

// meter times the calls of a call sequence.
type meter struct {
	*cuda.Device
	counts bool // this round counts
	all    []durations
}

// time makes and times a call of size bytes, and returns its error.
func (m *meter) time(c device.Call, size device.Size, f func() error) error {
	return m.timed(key{call: c, size: size}, f)
}

// timed is time with the complete key.
func (m *meter) timed(k key, f func() error) error {
	before := m.Usage().Times[k.call]
	start := time.Now()
	err := f()
	ours := time.Since(start)
	if err != nil || !m.counts {
		return err
	}
	i := slices.IndexFunc(m.all, func(d durations) bool { return d.key == k })
	if i < 0 {
		i, m.all = len(m.all), append(m.all, durations{key: k})
	}
	m.all[i].driver = append(m.all[i].driver, time.Duration(m.Usage().Times[k.call]-before))
	m.all[i].ours = append(m.all[i].ours, ours)
	return nil
}

// callSequence is a repeated sequence of driver calls.
type callSequence struct {
	name string
	size device.Size
	// begin prepares the sequence and returns the function of one round. Between rounds it holds
	// nothing that was not there before.
	begin func(m *meter) (round func() error, err error)
}

// run times the calls of the call sequence on a fresh device, so that leftovers of a failed call
// sequence are released.
func (c *callSequence) run(t *Timing, budget time.Duration) {
	m := &meter{}
	err := c.rounds(m, budget)
	if err != nil {
		t.Untimed = append(t.Untimed, Untimed{c.name, c.size, err.Error(), errors.Is(err, device.ErrOutOfMemory)})
		return
	}
	for _, d := range m.all {
		t.Calls = append(t.Calls, Timed{
			Call: d.call.String(), Size: d.size, Of: d.of, Form: d.form, Count: len(d.ours), Driver: spread(d.driver),
			Ours: spread(d.ours),
		})
	}
}

func (c *callSequence) rounds(m *meter, budget time.Duration) (err error) {
	if m.Device, err = cuda.Open(cuda.Config{}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	round, err := c.begin(m)
	if err != nil {
		return err
	}
	start := time.Now()
	for n := range warmup + mostRounds {
		if m.counts = n >= warmup; n >= warmup+fewest && time.Since(start) > budget {
			break
		}
		if err := round(); err != nil {
			return err
		}
	}
	return nil
}

// spread summarizes durations, which it sorts.
//
// Precondition: there is one.
func spread(all []time.Duration) Spread {
	slices.Sort(all)
	at := func(percent int) uint64 { return uint64(all[(len(all)*percent+99)/100-1]) } // the nearest rank
	return Spread{Median: at(50), P10: at(10), P90: at(90)}
}
