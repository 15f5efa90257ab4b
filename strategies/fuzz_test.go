package strategies_test

import (
	"encoding/json"
	"errors"
	"math/bits"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/propstest"
	"github.com/vramyard/vramyard/strategies"
)

// FuzzDifferential runs made-up operations through every name of the catalogue.
func FuzzDifferential(f *testing.F) {
	var subjects []props.Subject
	for _, name := range strategies.All().Names() {
		setup, err := strategies.All().Lookup(name, nil)
		require.NoError(f, err)
		subjects = append(subjects, props.SubjectOfSetup(setup, sim.Config{}))
	}
	propstest.FuzzDifferential(f, subjects...)
}

// FuzzLookup reads made-up configurations. What is accepted must be a fixed point: its own
// JSON, defaults filled in, is accepted as the same configuration. And it must work, or
// refuse as the contract says.
func FuzzLookup(f *testing.F) {
	for _, name := range append(strategies.All().Names(), "", "bfc:", "nobody", "slab") {
		f.Add(name, "", uint64(1))
	}
	for _, seed := range []struct{ name, config string }{
		{"bfc", `{"limit":"1MiB","variant":"2026","spatial":true,"timing":true}`},
		{"bfc:growth", `{"limit":256,"fragmentation_fraction":1e-300}`},
		{"bfc", `{"fragmentation_fraction":-1e308,"mended":true}`},
		{"buddy:xdl", `{"region_bytes":"1MiB","block_bytes":1}`},
		{"slab", `{"compat":"xdl","segments":3,"unit_bytes":768,"region_bytes":147456}`},
		{"slab:blaze", `{"region_bytes":3072,"min_class_bytes":1}`},
		{"slabbuddy:xdl", `{"region_bytes":65536,"block_bytes":4,"segments":1}`},
		{"bfc", `{"limt":1}`}, {"bfc", `{} {}`}, {"bfc", `[1]`}, {"bfc", `{"limit":"1.5GiB"}`}, {"bfc", `null`},
	} {
		f.Add(seed.name, seed.config, uint64(300))
	}
	f.Fuzz(func(t *testing.T, name, config string, size uint64) {
		setup, err := strategies.All().Lookup(name, json.RawMessage(config))
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		text, err := json.Marshal(setup.Config)
		require.NoError(t, err)
		base, _, _ := strings.Cut(name, ":")
		again, err := strategies.All().Lookup(base, text)
		require.NoError(t, err, "its own JSON is refused: %s", text)
		require.Equal(t, setup.Config, again.Config)
		if heavy(text) {
			return
		}
		useBriefly(t, setup.ForCapacity(device.MiB), alloc.Request{Size: device.Size(size)})
	})
}

// heavy reports whether a configuration has a number that makes tables of more than a
// million entries, which is allowed, and slow: the sizes that are small against others.
func heavy(text []byte) bool {
	var fields map[string]any
	if json.Unmarshal(text, &fields) != nil {
		return true
	}
	segments, _ := fields["segments"].(float64)
	return segments > 1<<12
}

// useBriefly makes a few calls on a device of 1 MiB.
func useBriefly(t *testing.T, setup setting.Setup, r alloc.Request) {
	dev, err := sim.New(sim.Config{Capacity: device.MiB, Align: 256})
	require.NoError(t, err)
	s, err := setup.New(dev)
	if err != nil {
		require.ErrorIs(t, err, device.ErrOutOfMemory, "the configuration was accepted")
		require.Zero(t, dev.Usage().Regions)
		return
	}
	b, err := s.Alloc(r)
	switch {
	case err == nil:
		if most := setup.Promises.MaxGrant; most != nil && bits.Len64(uint64(r.Size)) < 64 {
			require.LessOrEqual(t, b.Size, most(r))
		}
		require.GreaterOrEqual(t, b.Size, r.Size)
		require.NoError(t, s.Check())
		require.NoError(t, s.Free(b.Addr))
	case !errors.Is(err, alloc.ErrOutOfMemory):
		require.ErrorIs(t, err, alloc.ErrInvalidRequest)
	}
	require.NoError(t, s.Check())
	require.NoError(t, s.Close())
	require.Zero(t, dev.Usage().Regions)
}
