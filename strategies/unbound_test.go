package strategies_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies"
)

// grants allocates and frees at random on a device, and returns all that was granted and what the
// device counted at most.
func grants(t *testing.T, seed uint64, s setting.Setup, on sim.Config) ([]alloc.Block, device.Size) {
	t.Helper()
	dev, err := sim.New(on)
	require.NoError(t, err)
	a, err := s.ForCapacity(on.Capacity).New(dev)
	require.NoError(t, err)
	defer func() { require.NoError(t, a.Close()) }()
	r := rand.New(rand.NewPCG(seed, 3))
	var live []device.Addr
	var all []alloc.Block
	for range 400 {
		if len(live) > 0 && r.IntN(100) < 45 {
			k := r.IntN(len(live))
			require.NoError(t, a.Free(live[k]))
			live = slices.Delete(live, k, k+1)
			continue
		}
		b, err := a.Alloc(alloc.Request{Size: 1 + device.Size(r.Int64N(int64(512)<<r.IntN(17))),
			Stream: device.Stream(r.IntN(2))})
		if errors.Is(err, alloc.ErrInvalidRequest) { // more than it serves at all
			continue
		}
		require.NoError(t, err, s.Name)
		live, all = append(live, b.Addr), append(all, b)
	}
	for _, b := range live {
		require.NoError(t, a.Free(b))
	}
	return all, dev.Usage().PeakCharged
}

// TestUnboundStrategiesNeedWhatTheyHold holds every preset that says so to the same calls on an
// ample device and on one that has exactly what the ample one counted.
func TestUnboundStrategiesNeedWhatTheyHold(t *testing.T) {
	var unbound []string
	for _, spec := range strategies.All() {
		for _, p := range spec.Presets {
			name := strings.TrimSuffix(spec.Name+":"+p.Name, ":")
			s, err := strategies.All().Lookup(name, nil)
			require.NoError(t, err)
			if !s.Unbound() {
				continue
			}
			require.False(t, s.Preallocates, name)
			unbound = append(unbound, name)
			for seed := range uint64(20) {
				on := sim.Config{Capacity: device.TiB, Charge: []device.Size{256, 2 * device.MiB}[seed%2]}
				want, counted := grants(t, seed, s, on)
				on.Capacity = counted
				got, _ := grants(t, seed, s, on)
				require.Equal(t, want, got, "%s, seed %d", name, seed)
			}
		}
	}
	require.Subset(t, unbound, []string{"caching", "async", "async:keep", "buddy", "slab", "slabbuddy", "bestfit:growth",
		"tlsf:growth"})
	require.NotSubset(t, unbound, []string{"bfc"})
	require.NotSubset(t, unbound, []string{"caching:expandable"})
	require.NotSubset(t, unbound, []string{"tlsf"})
}
