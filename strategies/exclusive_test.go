package strategies_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/internal/invariants"
	"github.com/vramyard/vramyard/strategies"
	"github.com/vramyard/vramyard/strategies/bfc"
	"github.com/vramyard/vramyard/strategies/caching"
)

// TestOverlappingCallsPanicUnderTheTag calls every strategy from inside its own Walk, and from a
// second goroutine while a Walk runs.
func TestOverlappingCallsPanicUnderTheTag(t *testing.T) {
	if !invariants.Enabled {
		t.Skip("needs the tag invariants")
	}
	for _, name := range strategies.All().Names() {
		setup, err := strategies.All().Lookup(name, nil)
		require.NoError(t, err)
		dev, err := sim.New(sim.Config{Capacity: device.GiB, Align: 256})
		require.NoError(t, err)
		s, err := setup.ForCapacity(device.GiB).New(dev)
		require.NoError(t, err)
		b, err := s.Alloc(alloc.Request{Size: 512})
		require.NoError(t, err)
		want := name + ": entered by two goroutines at once, or from inside its own Walk"
		for call, f := range overlapping(s, b.Addr) {
			for range s.Walk {
				require.PanicsWithValue(t, want, f, "%s: %s inside Walk", name, call)
				done := make(chan struct{})
				go func() {
					defer close(done)
					require.PanicsWithValue(t, want, f, "%s: %s of a second goroutine", name, call)
				}()
				<-done
				break
			}
			require.NoError(t, s.Check(), "%s: the guard is left after %s", name, call)
		}
		require.NoError(t, s.Free(b.Addr), name)
		require.NoError(t, s.Close(), name)
	}
}

// overlapping returns calls of a strategy, by name, none of which may overlap another call. Every
// power goes the same way through package power, so two are enough.
func overlapping(s alloc.Strategy, live device.Addr) map[string]func() {
	calls := map[string]func(){
		"Alloc": func() { _, _ = s.Alloc(alloc.Request{Size: 1}) }, // every call must panic
		"Free":  func() { _ = s.Free(live) },
		"Stats": func() { s.Stats() },
		"Walk":  func() { s.Walk(func(alloc.Chunk) bool { return true }) },
		"Check": func() { _ = s.Check() },
		"Close": func() { _ = s.Close() },
	}
	if power.Has(s, power.PowerFreeWalker) {
		calls["WalkFree"] = func() { power.WalkFree(s, func(alloc.Chunk) bool { return true }) }
	}
	if power.Has(s, power.PowerTrimmer) {
		calls["Trim"] = func() { _, _ = power.Trim(s) }
	}
	return calls
}

// TestGuardKeepsPowers compares the powers of strategies with those of the guarded ones. The BFC of
// 2016 lacks powers that its methods suggest.
func TestGuardKeepsPowers(t *testing.T) {
	dev, err := sim.New(sim.Config{})
	require.NoError(t, err)
	pytorch, err := caching.New(dev, caching.Config{})
	require.NoError(t, err)
	old, err := bfc.New(dev, bfc.Config{Variant: bfc.V2016})
	require.NoError(t, err)
	for _, s := range []alloc.Strategy{pytorch, old} {
		guarded := wrap.Exclusive("guarded", s)
		require.Equal(t, invariants.Enabled, guarded != s, "an ordinary build has no guard")
		for p := range power.Powers {
			require.Equal(t, power.Has(s, p), power.Has(guarded, p), "%v", p)
		}
	}
}
