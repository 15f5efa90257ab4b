package export_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// randomTrace makes a trace with every kind of event that a recording handles.
func randomTrace(t *testing.T, seed uint64, events int) *trace.Trace {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 7))
	b := trace.NewBuilder(trace.Header{Name: fmt.Sprintf("random%d", seed), Format: "text", Hash: "abc"})
	timed, delays := seed%2 == 0, seed%3 != 0
	var live, freed []uint64
	next, now := uint64(1), int64(0)
	pool, redirected := uint64(0), false // private pools, one at a time
	add := func(e trace.Event) {
		e.Time = trace.NoTime
		if timed && rng.IntN(10) > 0 {
			now += int64(rng.IntN(5000))
			e.Time = now
		}
		require.NoError(t, b.Add(e))
	}
	pick := func(from *[]uint64) uint64 {
		i := rng.IntN(len(*from))
		id := (*from)[i]
		(*from)[i] = (*from)[len(*from)-1]
		*from = (*from)[:len(*from)-1]
		return id
	}
	for range events {
		switch k := rng.IntN(100); {
		case k < 50 || len(live) == 0:
			size := device.Size(1 + rng.IntN(1<<(4+rng.IntN(22))))
			e := trace.Event{Kind: trace.Alloc, ID: next, Size: size, Stream: device.Stream(rng.IntN(3) * 0x1000)}
			if k%5 == 0 {
				e.Tag = b.Tag(fmt.Sprintf("layer%d", rng.IntN(4)))
			}
			add(e)
			live = append(live, next)
			next++
		case k < 88:
			id := pick(&live)
			add(trace.Event{Kind: trace.Free, ID: id})
			if delays && rng.IntN(4) == 0 {
				freed = append(freed, id)
			}
		case k < 92 && len(freed) > 0:
			add(trace.Event{Kind: trace.Completed, ID: pick(&freed)})
		case k < 94:
			add(trace.Event{Kind: trace.Use, ID: live[rng.IntN(len(live))], Stream: device.Stream(rng.IntN(3) * 0x1000)})
		case k < 95:
			add(trace.Event{Kind: trace.Drain, Stream: device.Stream(rng.IntN(3) * 0x1000)})
		case k < 96:
			add(trace.Event{Kind: trace.Poll})
		case k < 97:
			add(trace.Event{Kind: trace.Trim})
		case k < 98 && !redirected:
			pool++
			add(trace.Event{Kind: trace.PoolBegin, Arg: pool, Stream: trace.AllStreams})
			redirected = true
		case k < 98:
			add(trace.Event{Kind: trace.PoolEnd, Arg: pool})
			add(trace.Event{Kind: trace.PoolRelease, Arg: pool})
			redirected = false
		case k < 99:
			add(trace.Event{Kind: trace.Mark, Tag: b.Tag(fmt.Sprintf("step %d", rng.IntN(9)))})
		}
	}
	return b.Trace()
}
