package postmortem_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/postmortem"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/strategies"
)

// churn returns a trace of allocations and frees that fills a device, and goes on.
func churn(t *testing.T, r *rand.Rand, streams int) *trace.Trace {
	t.Helper()
	b := trace.NewBuilder(trace.Header{Name: "churn"})
	var live []uint64
	for id := uint64(1); id < 400; id++ {
		e := trace.Event{Kind: trace.Alloc, ID: id, Time: trace.NoTime, Stream: device.Stream(r.IntN(streams))}
		switch r.IntN(4) {
		case 0:
			e.Size = device.Size(1 + r.IntN(100_000))
		case 1:
			e.Size = device.Size(1 + r.IntN(1<<20))
		default:
			e.Size = device.Size(1 + r.IntN(8<<20))
		}
		e.Tag = b.Tag(fmt.Sprintf("layer %d", id%5))
		require.NoError(t, b.Add(e))
		live = append(live, id)
		for len(live) > 20 && r.IntN(5) < 3 {
			k := r.IntN(len(live))
			require.NoError(t, b.Add(trace.Event{Kind: trace.Free, ID: live[k], Time: trace.NoTime}))
			live[k] = live[len(live)-1]
			live = live[:len(live)-1]
		}
	}
	return b.Trace()
}

// onDevices returns fresh devices of a capacity.
func onDevices(capacity device.Size) func() (device.Device, error) {
	return func() (device.Device, error) { return sim.New(sim.Config{Capacity: capacity}) }
}

// TestPlansMakeRoom goes through random traces with every strategy. Where memory runs out, the
// blocks of a plan are freed and the strategy is asked again. It must grant the request then,
// unless nothing is known of which of its free chunks merge; in that case another plan must hold.
// Only the superblocks of rmm:arena, which a walk does not show, may undo every plan.
func TestPlansMakeRoom(t *testing.T) {
	t.Logf("seed %d", *seed)
	all := strategies.All()
	proven := 0
	for _, name := range all.Names() {
		r := rand.New(rand.NewPCG(*seed, 11))
		for k := range 12 {
			p, err := replay.Prepare(t.Context(), churn(t, r, 1+k%3))
			require.NoError(t, err)
			capacity := device.Size(48+16*(k%5)) * mib
			setup, err := all.Lookup(name, nil)
			require.NoError(t, err)
			setup = setup.ForCapacity(capacity)
			o := postmortem.Options{Event: postmortem.FirstOOM, Device: onDevices(capacity)}
			v, err := postmortem.Replay(p, setup, o)
			require.NoError(t, err, name)
			if v.Outcome != postmortem.Refused || len(v.Report.Plans) == 0 {
				continue
			}
			first := v.Report.Plans[0]
			require.NotNil(t, first.Proven, name)
			if name == "rmm:arena" && !*first.Proven {
				continue
			}
			require.True(t, *first.Proven, "%s: %s %v", name, v.Report.Verdict, &first)
			if setup.Promises.MustMerge != nil {
				require.False(t, slices.ContainsFunc(v.Report.Plans, func(p postmortem.Plan) bool {
					return p.Proven != nil && !*p.Proven
				}), name)
			}
			require.NotEqual(t, postmortem.CauseAgain, v.Report.Cause, name)
			require.Equal(t, fmt.Sprintf("layer %d", v.ID%5), v.Report.Requester.Tag, name)
			proven++
			o.Event = v.Event
			again, err := postmortem.Replay(p, setup, o)
			require.NoError(t, err)
			require.Equal(t, v, again, "the event is found again by its number")
		}
	}
	t.Logf("%d plans hold", proven)
	require.Greater(t, proven, 200)
}

// TestOnlyWhatFitsIsUsed holds strategies to the promise Fits: a block lies in a free chunk that
// fits, if no memory was taken for it.
func TestOnlyWhatFitsIsUsed(t *testing.T) {
	t.Logf("seed %d", *seed)
	all := strategies.All()
	looked := 0
	for _, config := range []string{"", `{"conf":"max_split_size_mb:21"}`, `{"conf":"expandable_segments:True"}`} {
		setup, err := all.Lookup("caching", json.RawMessage(config))
		require.NoError(t, err)
		fits := setup.Promises.Fits
		require.NotNil(t, fits)
		r := rand.New(rand.NewPCG(*seed, 12))
		for k := range 6 {
			var was []alloc.Chunk
			var held device.Size
			dev, err := sim.New(sim.Config{Capacity: 256 * mib})
			require.NoError(t, err)
			_, err = replay.Run(churn(t, r, 1+k%3), setup, dev, replay.Options{Observe: func(o replay.Observation) error {
				if o.Strategy == nil {
					return nil
				}
				now := o.Faults.Usage().Held
				i := slices.IndexFunc(was, func(c alloc.Chunk) bool { return c.Addr <= o.Block.Addr && o.Block.Addr < c.End() })
				if o.Block.Size > 0 && now == held && i >= 0 && was[i].State == alloc.Free {
					looked++
					if !fits(was[i], o.Request) {
						return fmt.Errorf("%+v serves %+v", was[i], o.Request)
					}
				}
				held, was = now, slices.Collect(o.Strategy.Walk)
				return nil
			}})
			require.NoError(t, err)
		}
	}
	require.Greater(t, looked, 1000)
}

// TestVerdicts has each outcome of a small trace that needs 12 MiB at once.
func TestVerdicts(t *testing.T) {
	b := trace.NewBuilder(trace.Header{Name: "small"})
	add := func(k trace.Kind, id uint64, size device.Size) {
		require.NoError(t, b.Add(trace.Event{Kind: k, ID: id, Size: size, Time: trace.NoTime}))
	}
	add(trace.Alloc, 1, 4*mib)
	add(trace.Alloc, 2, 8*mib)
	add(trace.Free, 1, 0)
	add(trace.Refused, 0, 9*mib)
	p, err := replay.Prepare(t.Context(), b.Trace())
	require.NoError(t, err)
	setup, err := strategies.All().Lookup("bestfit", nil)
	require.NoError(t, err)
	at := func(event int, capacity device.Size) *postmortem.Verdict {
		v, err := postmortem.Replay(p, setup, postmortem.Options{Event: event, Device: onDevices(capacity)})
		require.NoError(t, err)
		return v
	}
	require.Equal(t, postmortem.Granted, at(1, 12*mib).Outcome)
	v := at(1, 10*mib)
	require.Equal(t, postmortem.Refused, v.Outcome)
	require.Equal(t, 4*mib, v.Report.Live.Bytes)
	// The recorded program was refused 9 MiB at the end: beside 8 live ones that takes 17 MiB or more.
	require.Equal(t, postmortem.NoOOM, at(postmortem.FirstOOM, 40*mib).Outcome)
	require.Equal(t, 3, at(postmortem.FirstOOM, 12*mib).Event)
	v = at(3, 16*mib)
	require.Equal(t, postmortem.Refused, v.Outcome)
	require.Equal(t, 9*mib, v.Size)
	require.Equal(t, postmortem.Granted, at(3, 40*mib).Outcome)

	for event, want := range map[int]string{2: "event 2: free: want a request", 4: "event 4: small has 4 events",
		-7: "event -7: small has 4 events"} {
		_, err := postmortem.Replay(p, setup, postmortem.Options{Event: event, Device: onDevices(mib)})
		require.EqualError(t, err, want)
	}
	setup, err = strategies.All().Lookup("bfc", json.RawMessage(`{"limit":"64MiB"}`))
	require.NoError(t, err)
	require.Equal(t, postmortem.Refused, at(1, 10*mib).Outcome)
}

// TestRequestsOfPrivatePoolsAreExplainedThere refuses a request that goes to a private pool, beside
// free memory that is not the pool's.
func TestRequestsOfPrivatePoolsAreExplainedThere(t *testing.T) {
	b := trace.NewBuilder(trace.Header{Name: "pool"})
	for _, e := range []trace.Event{
		{Kind: trace.Alloc, ID: 1, Size: 12 * mib}, {Kind: trace.Alloc, ID: 2, Size: 2 * mib},
		{Kind: trace.Alloc, ID: 3, Size: 16 * mib},
		{Kind: trace.Alloc, ID: 4, Size: 2 * mib}, {Kind: trace.Free, ID: 2},
		{Kind: trace.PoolBegin, Arg: 5, Stream: trace.AllStreams}, {Kind: trace.Alloc, ID: 5, Size: 2 * mib},
	} {
		e.Time = trace.NoTime
		require.NoError(t, b.Add(e))
	}
	p, err := replay.Prepare(t.Context(), b.Trace())
	require.NoError(t, err)
	setup, err := strategies.All().Lookup("caching", nil)
	require.NoError(t, err)
	v, err := postmortem.Replay(p, setup, postmortem.Options{Event: 6, Device: onDevices(33 * mib)})
	require.NoError(t, err)
	require.Equal(t, postmortem.Refused, v.Outcome)
	require.Equal(t, alloc.PoolID(5), v.Report.Pool)
	require.Equal(t, postmortem.CausePool, v.Report.Cause, v.Report.Verdict)
	require.Contains(t, v.Report.Verdict, "lies in another pool than the request's private pool")
	v, err = postmortem.Replay(p, setup, postmortem.Options{Event: 3, Device: onDevices(33 * mib)})
	require.NoError(t, err)
	require.Equal(t, postmortem.Granted, v.Outcome)
	require.Zero(t, v.Calls, "the segment of the second block has room")
}

// TestVerdictsInWords has the line of each outcome.
func TestVerdictsInWords(t *testing.T) {
	for outcome, want := range map[postmortem.Outcome]string{
		postmortem.Granted:  "bfc: event 3, allocation 4 of 5.00 MiB on stream 6: granted, 1 device call, 9.00 MiB held\n",
		postmortem.Invalid:  "bfc: event 3, allocation 4 of 5.00 MiB on stream 6: invalid, 1 device call, 9.00 MiB held\n",
		postmortem.NotBuilt: "bfc: the device has no room for what the strategy takes at once\n",
		postmortem.NoOOM:    "bfc: no request ran out of memory\n",
	} {
		v := postmortem.Verdict{Strategy: "bfc", Outcome: outcome, Event: 3, ID: 4, Size: 5 * mib, Stream: 6, Calls: 1,
			Held: 9 * mib}
		var text strings.Builder
		require.NoError(t, report.PostmortemVerdict(&text, &v))
		require.Equal(t, want, text.String())
	}
}
