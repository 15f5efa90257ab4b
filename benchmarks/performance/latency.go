package main

import (
	"fmt"
	"math"
	"runtime"

	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/bench"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// The sizes that loads are timed over, and how.
const (
	lineBytes    = 64
	lineWords    = lineBytes / 8
	leastChase   = 16 << 10
	mostChase    = 512 << 20
	chaseLoads   = 1 << 20 // a round
	chaseStreams = 16      // independent chases at once: at least as many as a core has misses under way
)

// latencyFile is the raw file of the step.
type latencyFile struct {
	header
	Clock string      `json:"clock"` // clock of the times
	Loads []loadTimes `json:"loads"` // by size, ascending
}

// loadTimes holds the nanoseconds of a load from a random line of a buffer of some size.
type loadTimes struct {
	Bytes    int          `json:"bytes"`
	Serial   bench.Timing `json:"serial"`   // each load has the address of the next; a "pair" is a load
	Parallel bench.Timing `json:"parallel"` // sixteen such chases at once
}

// takeLatency times loads from powers of two of bytes.
func takeLatency(o options) error {
	h, err := newHeader()
	if err != nil {
		return err
	}
	f := latencyFile{header: h, Clock: replay.ClockName()}
	for n := leastChase; n <= mostChase; n *= 2 {
		f.Loads = append(f.Loads, timeLoads(n, o.rounds))
	}
	return store(o, "latency.json", f)
}

func timeLoads(n, rounds int) loadTimes {
	runtime.LockOSThread() // the clock is the thread's
	defer runtime.UnlockOSThread()
	words, order := cycle(n / lineBytes)
	at := order[0]
	var many [chaseStreams]uint64
	for i := range many {
		many[i] = order[i*len(order)/chaseStreams]
	}
	var serial, parallel []float64
	at = chase(words, at, chaseLoads) // the first pages and lines
	for range rounds {
		began := replay.ThreadTime()
		at = chase(words, at, chaseLoads)
		serial = append(serial, float64(replay.ThreadTime()-began)/chaseLoads)
		began = replay.ThreadTime()
		chaseAll(words, &many, chaseLoads/chaseStreams)
		parallel = append(parallel, float64(replay.ThreadTime()-began)/chaseLoads)
	}
	if at == math.MaxUint64 {
		panic(fmt.Sprintf("chase led to %d", at)) // uses the loads, so that the compiler keeps them
	}
	return loadTimes{n, bench.TimingOf(serial), bench.TimingOf(parallel)}
}

// cycle returns an array of cache lines, the first word of each of which has the index of the
// next one's, and these indices in their order: one random cycle through all lines.
func cycle(lines int) (words, order []uint64) {
	rng := workload.NewRand(42)
	order = make([]uint64, lines)
	for i := range order {
		order[i] = uint64(i) * lineWords
	}
	for i := len(order) - 1; i > 0; i-- {
		j := rng.Below(uint64(i) + 1)
		order[i], order[j] = order[j], order[i]
	}
	words = make([]uint64, lines*lineWords)
	for i, at := range order {
		words[at] = order[(i+1)%lines]
	}
	return words, order
}

// chase follows the cycle. No load can begin before the one before has ended.
func chase(words []uint64, at uint64, loads int) uint64 {
	for range loads {
		at = words[at]
	}
	return at
}

// chaseAll follows the cycle from many places at once.
func chaseAll(words []uint64, at *[chaseStreams]uint64, loads int) {
	for range loads {
		for i, a := range at {
			at[i] = words[a]
		}
	}
}

// of returns the nanoseconds that a serial and a parallel load from n bytes take, by
// interpolation between the logarithms of sizes, of the shortest rounds.
func (f *latencyFile) of(n float64) (serial, parallel float64) {
	all := f.Loads
	i := 1
	for i < len(all)-1 && float64(all[i].Bytes) < n {
		i++
	}
	low, high := all[i-1], all[i]
	share := (math.Log2(n) - math.Log2(float64(low.Bytes))) / math.Log2(float64(high.Bytes)/float64(low.Bytes))
	share = min(max(share, 0), 1)
	between := func(a, b float64) float64 { return a + share*(b-a) }
	return between(low.Serial.Min, high.Serial.Min), between(low.Parallel.Min, high.Parallel.Min)
}
