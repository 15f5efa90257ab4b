package linear

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
)

// mostBlocks bounds the blocks of a strategy whose histories are checked: more make the search for
// an order long.
const mostBlocks = 16

// Verify calls a strategy that promises to be [power.Concurrent] from many goroutines, each round
// on a new instance. Each history must be linearizable, unless the subject promises only
// [promise.Set.Quiescent], and the state at rest behind it must follow from it. Beat is called
// between calls. The error is a [*props.Violation] of invariant I45 if the promise is broken.
//
// A round whose history is [ErrUndecided] is counted and played again with another seed, up to as
// often as there are rounds. Then the error is ErrUndecided.
func Verify(s props.Subject, rounds int, seed uint64, beat func()) (undecided int, err error) {
	size, blocks := fewBlocks(s)
	load := Load{Operations: 500, Size: size, Seed: seed, Think: func() { beat(); runtime.Gosched() }}
	strict := !s.Promises.Quiescent && blocks != 0
	for round := 0; round < rounds+undecided; round, load.Seed = round+1, load.Seed+1 {
		a, err := build(s)
		if err != nil {
			return undecided, err
		}
		load.Streams = !power.Has(a, power.PowerStreamRecorder) // which may keep memory for a stream
		h := RunLoad(a, load)
		if strict {
			err = Check(h, blocks)
		}
		if errors.Is(err, ErrUndecided) {
			if undecided++; undecided <= rounds {
				err = nil
			}
		}
		if err == nil {
			err = Rest(a, h)
		}
		if err = errors.Join(err, a.Close()); err != nil {
			return undecided, fmt.Errorf("%s, seed %d: %w", s.Name, load.Seed, err)
		}
	}
	return undecided, nil
}

func build(s props.Subject) (alloc.Strategy, error) {
	dev, err := sim.New(s.Device)
	if err != nil {
		return nil, err
	}
	return s.New(dev)
}

// fewBlocks returns a size in bytes of which the subject has a few equal blocks, as a [Model] has,
// and their number. It is 0, with the default size, if there is no such size: then the model would
// refuse right answers.
func fewBlocks(s props.Subject) (size device.Size, n int) {
	for size := s.Device.Capacity / 4; size > 0 && size > s.Device.Capacity/mostBlocks; size -= max(size/4, 1) {
		if n := granted(s, size); n >= 2 && n <= mostBlocks && sequential(s, size, n) {
			return size, n
		}
	}
	return min(4096, max(s.Device.Capacity/64, 1)), 0
}

// granted returns how many blocks of a size an instance grants, counted up to mostBlocks + 1.
func granted(s props.Subject, size device.Size) (n int) {
	a, err := build(s)
	if err != nil {
		return 0
	}
	defer a.Close() // the device is thrown away with it
	for ; n <= mostBlocks && err == nil; n++ {
		_, err = a.Alloc(alloc.Request{Size: size})
	}
	return n - 1
}

// sequential reports whether one caller finds n equal blocks at any time.
func sequential(s props.Subject, size device.Size, n int) bool {
	a, err := build(s)
	if err != nil {
		return false
	}
	defer a.Close() // the device is thrown away with it
	return Check(RunLoad(a, Load{Callers: 1, Operations: 500, Size: size}), n) == nil
}

// Rest checks the state at rest after a history: the live blocks are exactly the ones granted and
// not freed, they are disjoint, and counters and private indexes agree. It frees all blocks. The
// error is a [*props.Violation] of invariant I45.
func Rest(s alloc.Strategy, h History) error {
	broken := func(format string, args ...any) error {
		return &props.Violation{Number: props.ILinear, Detail: "at rest: " + fmt.Sprintf(format, args...)}
	}
	left := map[device.Addr]int{}
	grants, frees := uint64(0), uint64(0)
	for _, o := range h {
		c, a := o.Input.(Call), o.Output.(Answer)
		switch {
		case a.Err != nil || c.Kind == Live:
		case c.Kind == Alloc:
			left[a.Addr]++
			grants++
		default:
			left[c.Addr]--
			frees++
		}
	}
	live := 0
	for _, a := range h.blocks() {
		if n := left[a]; n != 0 && n != 1 {
			return broken("block %v was granted %d times more often than it was freed", a, n)
		}
		live += left[a]
	}
	stats := s.Stats()
	if stats.Live != live || stats.Allocs != grants || stats.Frees != frees {
		return broken("Stats has %d live blocks, %d grants and %d frees, the callers saw %d, %d and %d",
			stats.Live, stats.Allocs, stats.Frees, live, grants, frees)
	}
	walk := slices.Collect(s.Walk)
	if err := errors.Join(props.Tiling(walk), props.Accounting(walk, stats), s.Check()); err != nil {
		return broken("%v", err)
	}
	for _, c := range walk {
		if c.State == alloc.Live && left[c.Addr] != 1 {
			return broken("block %v is live, the callers freed it or never got it", c.Addr)
		}
	}
	for _, a := range h.blocks() {
		if left[a] == 0 {
			continue
		}
		if err := s.Free(a); err != nil {
			return broken("the free of live block %v was answered by %q", a, err)
		}
	}
	if n := s.Stats().Live; n != 0 {
		return broken("%d blocks are live after all were freed", n)
	}
	return nil
}
