package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/propstest"
	"github.com/vramyard/vramyard/strategies"
)

// subject is an arena of a capacity, on a device with room for it.
func subject(name string, capacity device.Size) props.Subject {
	c := Config{capacity}
	return props.SubjectOf(name, New, c, sim.Config{Capacity: 2 * capacity}, c.Promises())
}

func TestConformance(t *testing.T) {
	require.True(t, subject("tiny", 4*device.KiB).Learns())
	propstest.Run(t, subject("tiny", 4*device.KiB), subject("small", device.MiB))
}

// TestLearnedLifetimesSaveMemory learns from the first half of a training run and replays the whole
// run, beside the same arena without learning.
func TestLearnedLifetimesSaveMemory(t *testing.T) {
	run, err := workload.OpenRecording("cpu_unet_train")
	require.NoError(t, err)
	half, err := trace.Cut(run, trace.Span{End: len(run.Events) / 2}, len(run.Events))
	require.NoError(t, err)
	catalogue := append(strategies.All(), spec)
	var setups []setting.Setup
	for _, name := range []string{"lifetimes", "bfc:spatial"} {
		s, err := catalogue.Lookup(name, nil)
		require.NoError(t, err)
		setups = append(setups, s)
	}
	least := func(setups []setting.Setup) (all []device.Size) {
		r, err := compare.Compare(t.Context(), []*trace.Trace{run}, setups, compare.Options{Quick: true})
		require.NoError(t, err)
		for i := range r.Runs {
			all = append(all, *r.Runs[i].MinCapacity)
		}
		return all
	}
	untaught := least(setups)
	require.Equal(t, untaught[1], untaught[0], "an arena that has learned nothing is bfc:spatial")
	taught, training, err := compare.Learn(half, setups)
	require.NoError(t, err)
	require.Equal(t, []string{"lifetimes"}, training.Strategies)
	learned := least(taught)
	require.Equal(t, untaught[1], learned[1])
	require.Less(t, learned[0], untaught[0]/100*95, "at least 5 % less")
}

// TestHintsOutweighTheForecast grants blocks with each lifetime from an arena without a forecast.
func TestHintsOutweighTheForecast(t *testing.T) {
	gpu, err := sim.New(sim.Config{})
	require.NoError(t, err)
	l, err := New(gpu, Config{device.MiB})
	require.NoError(t, err)
	defer l.Close() // the device is thrown away with it
	for life, high := range map[alloc.Lifetime]bool{
		alloc.LifeUnknown: false, alloc.LifeMark: true, alloc.LifeStep: false, alloc.LifeRun: false,
	} {
		b, err := l.Alloc(alloc.Request{Size: 256, Origin: alloc.OriginOf(1, 1).WithLifetime(life)})
		require.NoError(t, err)
		require.Equal(t, high, b.Addr >= sim.Base+device.Addr(device.MiB/2), life)
	}
}
