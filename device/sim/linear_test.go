package sim_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
)

// linear places regions as the package comment says, by looking at every region held: the
// oracle of the search that skips. It knows neither capacities nor charges.
type linear struct {
	cfg     sim.Config
	regions []device.Region
	next    device.Addr
}

// place returns where a request goes, and its index.
func (l *linear) place(size, align device.Size) (at device.Addr, i int, ok bool) {
	switch l.cfg.Policy {
	case sim.Bump:
		return device.AlignUp(max(l.next, sim.Base), align), len(l.regions), true
	case sim.TopDown:
		return l.highest(size, align)
	}
	at = device.AlignUp(sim.Base, align)
	for i, r := range l.regions {
		if at.Add(size+l.cfg.Gap) <= r.Addr {
			return at, i, true
		}
		at = max(at, device.AlignUp(r.End().Add(l.cfg.Gap), align))
	}
	return at, len(l.regions), true
}

func (l *linear) highest(size, align device.Size) (at device.Addr, i int, ok bool) {
	end := sim.Base + 1<<40
	for i := len(l.regions); i >= 0; i-- {
		floor := sim.Base
		if i > 0 {
			floor = l.regions[i-1].End()
		}
		if end >= floor && end.Sub(floor) >= size {
			if at := device.AlignDown(end-device.Addr(size), align); at >= floor {
				return at, i, true
			}
		}
		if i > 0 {
			end = l.regions[i-1].Addr
		}
	}
	return 0, 0, false
}

// reserve books what place says.
func (l *linear) reserve(size, align device.Size) (device.Region, bool) {
	size, align = device.AlignUp(size, l.cfg.Round), max(align, l.cfg.Align)
	at, i, ok := l.place(size, align)
	r := device.Region{Addr: at, Size: size}
	if ok {
		l.regions = slices.Insert(l.regions, i, r)
		l.next = max(l.next, r.End())
	}
	return r, ok
}

// step reserves or releases the same on both and compares all that can be seen.
func step(t *testing.T, d *sim.Device, l *linear, release bool, which, size, align device.Size) {
	t.Helper()
	if n := device.Size(len(l.regions)); release && n > 0 {
		i := int(which % n)
		require.NoError(t, d.Release(l.regions[i].Addr))
		l.regions = slices.Delete(l.regions, i, i+1)
		return
	}
	want, ok := l.reserve(size, align)
	got, err := d.Reserve(size, align)
	if !ok {
		require.ErrorIs(t, err, device.ErrOutOfMemory)
		return
	}
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// layouts are configurations that place differently.
func layouts() map[string]sim.Config {
	return map[string]sim.Config{
		"first-fit": {},
		"fine":      {Align: 256},
		"gap":       {Align: 512, Gap: 700},
		"gap-pages": {Gap: 3 * device.MiB},
		"bump":      {Policy: sim.Bump, Gap: device.MiB},
		"top-down":  {Policy: sim.TopDown, Gap: device.MiB},
		"top-fine":  {Policy: sim.TopDown, Align: 256},
	}
}

// TestAgreesWithLinearSearch holds up to some thousands of regions, so that leaves are cut
// and joined, and lets the number rise and fall.
func TestAgreesWithLinearSearch(t *testing.T) {
	for name, c := range layouts() {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(name, "/", seed), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 5))
				d := newDevice(t, c)
				l := &linear{cfg: d.Config()}
				for i := range 12_000 {
					size := device.Size(1 + rng.Uint64N(1<<(8+rng.Uint64N(16))))
					align := device.Size(1) << rng.Uint64N(4)
					if rng.IntN(16) == 0 {
						align = 1 << rng.Uint64N(25)
					}
					falling := i/2_000%2 == 1
					step(t, d, l, rng.IntN(10) < 2+5*b2i(falling), device.Size(rng.Uint64()), size, align)
				}
				require.True(t, slices.Equal(l.regions, slices.Collect(d.Regions)))
				for len(l.regions) > 0 {
					step(t, d, l, true, device.Size(rng.Uint64()), 0, 0)
				}
				require.Zero(t, d.Usage().Held)
				step(t, d, l, false, 0, 1, 0)
			})
		}
	}
}

// TestRangesShareTheAddressSpace reserves regions, and ranges anywhere and at addresses, and
// compares every placement with the linear search.
func TestRangesShareTheAddressSpace(t *testing.T) {
	const grain = 4 * device.KiB
	for name, c := range layouts() {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 8))
			c.Granularity = grain
			d := newDevice(t, c)
			l := &linear{cfg: d.Config()}
			space := device.Size(0)
			for i := range 6_000 {
				size := device.Size(1+rng.IntN(40)) * grain
				switch k := rng.IntN(10); {
				case k < 2+3*b2i(i/1_000%2 == 1) && len(l.regions) > 0:
					j := rng.IntN(len(l.regions))
					r := l.regions[j]
					if d.Release(r.Addr) != nil {
						require.NoError(t, d.ReleaseRange(r.Addr))
					}
					l.regions = slices.Delete(l.regions, j, j+1)
				case k < 7:
					want, _ := l.reserve(size, 0)
					got, err := d.Reserve(size, 0)
					require.NoError(t, err)
					require.Equal(t, want, got)
				case k < 8:
					want, _ := l.reserve(size, 2*grain)
					got, err := d.ReserveRange(size, 2*grain, 0)
					require.NoError(t, err)
					require.Equal(t, want, got)
				default:
					l.reserveAt(t, d, rng, size)
				}
				space = max(space, l.next.Sub(sim.Base))
			}
			require.Equal(t, len(l.regions), d.Usage().Regions+d.Usage().Ranges)
			checkSpace(t, l, d.AddressSpace(), space)
		})
	}
}

// reserveAt reserves a range at an address of both.
func (l *linear) reserveAt(t *testing.T, d *sim.Device, rng *rand.Rand, size device.Size) {
	t.Helper()
	low, high := sim.Base, sim.Base+1<<40
	if l.cfg.Policy == sim.TopDown {
		low = high - 1<<30
	}
	r := device.Region{Addr: low.Add(device.Size(rng.Uint64N(1<<18)) * 4 * device.KiB), Size: size}
	i, _ := slices.BinarySearchFunc(l.regions, r, func(a, b device.Region) int {
		return int(int64(a.Addr) - int64(b.Addr))
	})
	gap := device.Size(0)
	if l.cfg.Policy == sim.FirstFit {
		gap = l.cfg.Gap
	}
	got, err := d.ReserveRange(size, 0, r.Addr)
	if i > 0 && l.regions[i-1].End().Add(gap) > r.Addr || i < len(l.regions) && r.End().Add(gap) > l.regions[i].Addr ||
		l.cfg.Policy == sim.TopDown && r.End() > high {
		require.ErrorIs(t, err, device.ErrOutOfMemory)
		return
	}
	require.NoError(t, err)
	require.Equal(t, r, got)
	l.regions = slices.Insert(l.regions, i, r)
	l.next = max(l.next, r.End())
}

// checkSpace compares the figures of the address space with those of the list.
func checkSpace(t *testing.T, l *linear, got sim.Space, space device.Size) {
	t.Helper()
	var want sim.Space
	floor := sim.Base
	for _, r := range append(slices.Clone(l.regions), device.Region{Addr: sim.Base.Add(space)}) {
		if n := r.Addr.Sub(floor); n > 0 {
			want.Free += n
			want.LargestFree = max(want.LargestFree, n)
			want.Pieces++
		}
		want.Used += r.Size
		floor = r.End()
	}
	require.Equal(t, want, got)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// FuzzPlacement reads a layout and calls of four bytes each, every one of them done so
// often that leaves fill.
func FuzzPlacement(f *testing.F) {
	f.Add([]byte("\x00\x01\x10\x02\x00\xff\x11\x03\x00\x80\x01\x07\x08"))
	f.Add([]byte("\x05\x01\x10\x02\x03\xff\x11\x43\x00\x81\xf1\x07\x08"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 || len(data) > 400 {
			return
		}
		names := []string{"first-fit", "fine", "gap", "gap-pages", "bump", "top-down", "top-fine"}
		d := newDevice(t, layouts()[names[int(data[0])%len(names)]])
		l := &linear{cfg: d.Config()}
		for data = data[1:]; len(data) >= 4; data = data[4:] {
			w := binary.LittleEndian.Uint32(data)
			for n := range device.Size(1 + w>>26) {
				size := device.Size(1+w>>9&0xff) << (w >> 4 & 15)
				step(t, d, l, w&3 == 0, device.Size(w>>9)*(n+1), size+n, 1<<(w>>17&31))
			}
		}
		require.True(t, slices.Equal(l.regions, slices.Collect(d.Regions)))
	})
}

// TestNothingIsAllocatedOnceWarm releases and reserves on a device that has been as full.
func TestNothingIsAllocatedOnceWarm(t *testing.T) {
	for _, memory := range []sim.Memory{sim.Counted, sim.Placed, sim.Filled} {
		d := newDevice(t, sim.Config{Memory: memory})
		rng := rand.New(rand.NewPCG(1, 1))
		held := fill(t, d, 5_000, rng)
		turn := func() { churn(t, d, held, rng) }
		for range 50_000 {
			turn()
		}
		require.Zero(t, testing.AllocsPerRun(10_000, turn), "%v", memory)
	}
}

// fill reserves n regions of mixed sizes.
func fill(t testing.TB, d *sim.Device, n int, rng *rand.Rand) []device.Addr {
	held := make([]device.Addr, n)
	for i := range held {
		r, err := d.Reserve(mixed(rng), 0)
		if err != nil {
			t.Fatal(err)
		}
		held[i] = r.Addr
	}
	return held
}

// mixed draws a size from 256 B to 16 MiB, each octave as often.
func mixed(rng *rand.Rand) device.Size {
	n := uint64(256) << rng.IntN(16)
	return device.Size(n + rng.Uint64N(n))
}

// churn releases one of the regions and reserves another.
func churn(t testing.TB, d *sim.Device, held []device.Addr, rng *rand.Rand) {
	i := rng.IntN(len(held))
	if err := d.Release(held[i]); err != nil {
		t.Fatal(err)
	}
	r, err := d.Reserve(mixed(rng), 0)
	if err != nil {
		t.Fatal(err)
	}
	held[i] = r.Addr
}

// BenchmarkChurn releases a region and reserves another with so many held.
func BenchmarkChurn(b *testing.B) {
	for _, policy := range []sim.Policy{sim.FirstFit, sim.TopDown, sim.Bump} {
		for _, n := range []int{1, 10, 100, 1_000, 10_000, 100_000, 1_000_000} {
			b.Run(fmt.Sprintf("policy=%s/regions=%d", policy, n), func(b *testing.B) {
				d := newDevice(b, sim.Config{Policy: policy})
				if policy == sim.TopDown && n > 10_000 {
					b.Skip("1 TiB does not hold so many")
				}
				rng := rand.New(rand.NewPCG(7, uint64(n)))
				held := fill(b, d, n, rng)
				for range 2 * n { // settled
					churn(b, d, held, rng)
				}
				b.ReportAllocs()
				for b.Loop() {
					churn(b, d, held, rng)
				}
			})
		}
	}
}
