package sim_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
)

func newDevice(t testing.TB, c sim.Config) *sim.Device {
	t.Helper()
	d, err := sim.New(c)
	require.NoError(t, err)
	return d
}

func reserve(t *testing.T, d *sim.Device, size, align device.Size) device.Addr {
	t.Helper()
	r, err := d.Reserve(size, align)
	require.NoError(t, err)
	return r.Addr
}

func TestFirstFitTakesTheLowestHole(t *testing.T) {
	d := newDevice(t, sim.Config{})
	a := reserve(t, d, 3*device.MiB, 0)
	b := reserve(t, d, 1, 0)
	c := reserve(t, d, 1, 0)
	require.Equal(t, []device.Addr{sim.Base, sim.Base + 4<<20, sim.Base + 6<<20}, []device.Addr{a, b, c})
	require.NoError(t, d.Release(a))
	require.Equal(t, sim.Base+8<<20, reserve(t, d, 5*device.MiB, 0), "does not fit the hole")
	require.Equal(t, sim.Base, reserve(t, d, 4*device.MiB, 0), "fills the hole to the last byte")
}

func TestFirstFitKeepsTheGap(t *testing.T) {
	d := newDevice(t, sim.Config{Gap: 2 * device.MiB})
	a := reserve(t, d, 2*device.MiB, 0)
	require.Equal(t, a+4<<20, reserve(t, d, 2*device.MiB, 0))
	require.NoError(t, d.Release(a))
	require.Equal(t, sim.Base, reserve(t, d, 2*device.MiB, 0), "region and gap fit below the next region")
}

func TestBumpNeverReuses(t *testing.T) {
	d := newDevice(t, sim.Config{Policy: sim.Bump})
	a := reserve(t, d, 2*device.MiB, 0)
	require.NoError(t, d.Release(a))
	require.Equal(t, a+2<<20, reserve(t, d, 2*device.MiB, 0))
}

func TestTopDownTakesTheHighestHole(t *testing.T) {
	d := newDevice(t, sim.Config{Policy: sim.TopDown})
	top := sim.Base + 1<<40
	a := reserve(t, d, 2*device.MiB, 0)
	b := reserve(t, d, 3*device.MiB, 0)
	require.Equal(t, top-2<<20, a)
	require.Equal(t, top-6<<20, b)
	require.NoError(t, d.Release(a))
	require.Equal(t, top-3<<20+1<<20, reserve(t, d, device.MiB, 0))
	_, err := d.Reserve(device.TiB, 0)
	require.ErrorIs(t, err, device.ErrOutOfMemory)
}

func TestAlignment(t *testing.T) {
	d := newDevice(t, sim.Config{})
	reserve(t, d, 1, 0)
	require.Equal(t, sim.Base+16<<20, reserve(t, d, 1, 16*device.MiB), "the larger alignment wins")
	require.Equal(t, sim.Base+2<<20, reserve(t, d, 1, 4096), "never below the device's own")
}

func TestSizesAndChargesAreRounded(t *testing.T) {
	d := newDevice(t, sim.Config{Capacity: 4 * device.MiB, Charge: 2 * device.MiB})
	r, err := d.Reserve(257, 0)
	require.NoError(t, err)
	require.Equal(t, device.Size(512), r.Size)
	reserve(t, d, 2*device.MiB, 0)
	_, err = d.Reserve(1, 0)
	require.ErrorIs(t, err, device.ErrOutOfMemory)
	u := d.Usage()
	require.Equal(t, device.Usage{
		Capacity: 4 * device.MiB, Charged: 4 * device.MiB, PeakCharged: 4 * device.MiB,
		Held: 2*device.MiB + 512, PeakHeld: 2*device.MiB + 512, Regions: 2,
		Calls: device.Calls{device.CallReserve: {Done: 2, Failed: 1}}, Time: u.Time, Times: u.Times,
	}, u)
	require.NoError(t, d.Release(r.Addr))
	require.Equal(t, 2*device.MiB, d.Usage().Free())
	require.Equal(t, 4*device.MiB, d.Usage().PeakCharged)
}

func TestChargeDefaultsToRound(t *testing.T) {
	d := newDevice(t, sim.Config{Round: 2 * device.MiB})
	require.Equal(t, 2*device.MiB, d.Config().Charge)
	r, err := d.Reserve(1, 0)
	require.NoError(t, err)
	require.Equal(t, 2*device.MiB, r.Size)
}

func TestMisuseIsRefused(t *testing.T) {
	d := newDevice(t, sim.Config{FailAbove: device.GiB})
	a := reserve(t, d, device.MiB, 0)
	for _, bad := range []device.Addr{0, a + 256, a - 256, ^device.Addr(0)} {
		require.ErrorIs(t, d.Release(bad), device.ErrInvalid)
	}
	for _, bad := range []struct {
		size, align device.Size
		want        error
	}{
		{0, 0, device.ErrInvalid},
		{1, 3, device.ErrInvalid},
		{device.GiB + 1, 0, device.ErrOutOfMemory},
		{^device.Size(0), 0, device.ErrOutOfMemory},
		{1, 1 << 63, device.ErrOutOfMemory},
	} {
		_, err := d.Reserve(bad.size, bad.align)
		require.ErrorIs(t, err, bad.want, "%+v", bad)
	}
	require.NoError(t, d.Release(a))
	require.ErrorIs(t, d.Release(a), device.ErrInvalid)
	require.Zero(t, d.Usage().Held)
}

func TestConfigIsValidated(t *testing.T) {
	for text, want := range map[string]string{
		`{"polcy":"bump"}`:       `unknown field "polcy"`,
		`{"policy":"worst"}`:     "worst",
		`{"clock":"sundial"}`:    "sundial",
		`{"round":3}`:            "round 3",
		`{"align":-1}`:           "size -1",
		`{"charge":"2XB"}`:       "2XB",
		`{"gap":"2TiB"}`:         "gap",
		`{"granularity":3}`:      "granularity 3",
		`{"granularity":2048}`:   "at least 4KiB",
		`{"memory":"warm"}`:      "warm",
		`{"ordinal":256}`:        "ordinal",
		`{"costs":"h300"}`:       `costs "h300": want one of ["published" "none"]`,
		`{"bandwidth":-1}`:       "bandwidth",
		`{`:                      "JSON ends in the middle",
		`{} {}`:                  "text after",
		`{} }`:                   "text after",
		`{} x`:                   "text after",
		`[]`:                     "want a JSON object",
		`{"capacity":"80 cows"}`: "cows",
	} {
		_, err := sim.ParseConfig([]byte(text))
		require.ErrorContains(t, err, want, text)
		require.ErrorContains(t, err, "simulated device")
	}
	c, err := sim.ParseConfig([]byte(`{"capacity":"80GiB"}`))
	require.NoError(t, err)
	require.Equal(t, sim.Config{
		Capacity: 80 * device.GiB, Policy: sim.FirstFit, Align: 2 * device.MiB, Round: 256, Charge: 256,
		Granularity: 2 * device.MiB, Memory: sim.Counted, Clock: sim.Drained,
		Costs: sim.Published, Bandwidth: 2039e9,
	}, c)
}

// TestAgreesWithNaiveSearch compares every placement with a search that tries each
// aligned address in turn over a map of the pages in use.
func TestAgreesWithNaiveSearch(t *testing.T) {
	const page, pages = 256, 64 // the oracle's whole address space
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 2))
		gap := device.Size(rng.IntN(3)) * page
		d := newDevice(t, sim.Config{Capacity: pages * page / 2, Align: page, Gap: gap})
		used := make([]bool, 4*pages)
		var held []device.Region
		for range 500 {
			if len(held) > 0 && rng.IntN(2) == 0 {
				k := rng.IntN(len(held))
				mark(used, held[k], false)
				require.NoError(t, d.Release(held[k].Addr))
				held = slices.Delete(held, k, k+1)
				continue
			}
			size, align := device.Size(1+rng.IntN(8*page)), device.Size(page<<rng.IntN(4))
			r, err := d.Reserve(size, align)
			if err != nil {
				require.Greater(t, d.Usage().Charged+device.AlignUp(size, device.Size(page)), device.Size(pages*page/2))
				continue
			}
			require.Equal(t, naive(used, held, r.Size, align, gap), r.Addr, "seed %d", seed)
			mark(used, r, true)
			held = append(held, r)
		}
	}
}

// mark sets the pages of a region.
func mark(used []bool, r device.Region, v bool) {
	for a := r.Addr; a < r.End(); a += 256 {
		used[(a-sim.Base)/256] = v
	}
}

// naive returns the lowest aligned address whose pages are free, at least gap behind the
// region below and with gap bytes before the region above.
func naive(used []bool, held []device.Region, size, align, gap device.Size) device.Addr {
	for a := sim.Base; ; a += device.Addr(align) {
		ok := true
		for _, h := range held {
			if a < h.End().Add(gap) && h.Addr < a.Add(size+gap) {
				ok = false
			}
		}
		for p := a; ok && p < a.Add(size); p += 256 {
			ok = !used[(p-sim.Base)/256]
		}
		if ok {
			return a
		}
	}
}
