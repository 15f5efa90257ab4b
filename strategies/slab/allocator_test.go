package slab_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace/vectors"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/propstest"
	"github.com/vramyard/vramyard/strategies/bfc"
	"github.com/vramyard/vramyard/strategies/buddy"
	"github.com/vramyard/vramyard/strategies/internal/cells"
	"github.com/vramyard/vramyard/strategies/slab"
)

// small are slabs of 1 KiB in regions of two: four slots of 256 bytes, two of 512, one of 1024.
func small() slab.Config {
	return slab.Config{
		SlabBytes: 1024, SlabSlots: 1, MaxClassBytes: 1024, Classes: slab.ClassesPow2, RegionBytes: 2048, Growth: "fixed",
	}
}

// openSlab returns a modern slab over a device of n bytes.
func openSlab(t *testing.T, c slab.Config, n device.Size) (alloc.Strategy, *device.Faults) {
	t.Helper()
	d, err := sim.New(sim.Config{Capacity: n, Align: 256})
	require.NoError(t, err)
	f, err := device.NewFaults(d, device.FaultPlan{})
	require.NoError(t, err)
	a, err := slab.New(f, c)
	require.NoError(t, err)
	return a, f
}

// take allocates blocks of the given sizes.
func take(t *testing.T, a alloc.Strategy, sizes ...device.Size) (all []device.Addr) {
	t.Helper()
	for _, n := range sizes {
		b, err := a.Alloc(alloc.Request{Size: n})
		require.NoError(t, err, n)
		all = append(all, b.Addr)
	}
	require.NoError(t, a.Check())
	return all
}

// giveBack frees blocks.
func giveBack(t *testing.T, a alloc.Strategy, all ...device.Addr) {
	t.Helper()
	for _, p := range all {
		require.NoError(t, a.Free(p))
	}
	require.NoError(t, a.Check())
}

func TestSliceChangesItsClass(t *testing.T) {
	a, _ := openSlab(t, small(), 2048)
	giveBack(t, a, take(t, a, 256, 256, 1024)...)
	take(t, a, 512, 512, 1024)
	require.Equal(t, 2048, int(a.Stats().Reserved))
	require.Zero(t, a.Stats().OOMs)
}

// TestNoRegionWhileASliceIsUnattached holds in every segment, whoever attached the others.
func TestNoRegionWhileASliceIsUnattached(t *testing.T) {
	c := small()
	c.Segments = 2
	for _, steal := range []string{slab.StealOn, slab.StealOff} {
		c.Steal = steal
		a, _ := openSlab(t, c, 0)
		take(t, a, 256)
		_, err := a.Alloc(alloc.Request{Size: 1024, Stream: 1})
		require.NoError(t, err)
		require.Equal(t, 1, a.Stats().Regions)
		_, err = a.Alloc(alloc.Request{Size: 256, Stream: 1})
		require.NoError(t, err)
		want := map[string]int{slab.StealOn: 1, slab.StealOff: 2}
		require.Equal(t, want[steal], a.Stats().Regions, "steal %s", steal)
	}
}

// TestShortageIsMetStepByStep has a device of one region. Each step of the order is what
// serves the next request.
func TestShortageIsMetStepByStep(t *testing.T) {
	c := small()
	c.MagazineRounds, c.EmptySlabs = 2, 1
	a, _ := openSlab(t, c, 2048)
	one := take(t, a, 512, 256)
	giveBack(t, a, one[0])
	require.Equal(t, []alloc.State{alloc.Cached, alloc.Free, alloc.Live, alloc.Free, alloc.Free, alloc.Free}, states(a))
	two := take(t, a, 1024) // the magazine is drained, and the slab it leaves empty becomes a slice
	giveBack(t, a, two...)
	giveBack(t, a, one[1])
	three := take(t, a, 2048) // magazines, empty slabs and at last the region go back
	require.Equal(t, uint64(1), a.Stats().Releases)
	_, err := a.Alloc(alloc.Request{Size: 1})
	require.ErrorIs(t, err, alloc.ErrOutOfMemory)
	r, ok := power.LastRefusal(a)
	require.True(t, ok)
	require.Equal(t, power.ReasonDevice, r.Reason)
	require.Zero(t, r.Free)
	giveBack(t, a, three...)
	take(t, a, 1)
}

// states returns the state of every chunk.
func states(a alloc.Strategy) (all []alloc.State) {
	for c := range a.Walk {
		all = append(all, c.State)
	}
	return all
}

// TestRegionsOfAnotherGradeMakeRoom has slabs of 1 KiB and of 4 KiB.
func TestRegionsOfAnotherGradeMakeRoom(t *testing.T) {
	c := small()
	c.RegionBytes = 1024
	c.SlabSlots, c.MaxClassBytes = 4, 1024
	a, _ := openSlab(t, c, 4096)
	giveBack(t, a, take(t, a, 256, 256, 256, 256, 256)...)
	require.Equal(t, 2048, int(a.Stats().Reserved))
	take(t, a, 1024)
	require.Equal(t, 4096, int(a.Stats().Reserved))
	require.Equal(t, uint64(2), a.Stats().Releases)
}

func TestLargeBlocksAreTheDevices(t *testing.T) {
	a, f := openSlab(t, small(), 0)
	p := take(t, a, 1025)[0]
	require.Equal(t, 1280, int(a.Stats().Allocated))
	require.Equal(t, 1280, int(a.Stats().Reserved))
	giveBack(t, a, p)
	require.Zero(t, a.Stats().Reserved)
	require.ErrorIs(t, a.Free(p), alloc.ErrInvalidFree)

	p = take(t, a, 1025)[0]
	f.FailNext(1)
	giveBack(t, a, p)
	require.Zero(t, a.Stats().Live)
	require.Equal(t, 1280, int(a.Stats().Reserved), "the device did not take the region back")
	require.ErrorIs(t, a.Free(p), alloc.ErrInvalidFree)
	f.FailNext(1)
	_, err := power.Trim(a)
	require.ErrorIs(t, err, device.ErrInjected)
	f.FailNext(1)
	take(t, a, 2049)
	require.Equal(t, 2304, int(a.Stats().Reserved), "a refused reservation released the region and was tried again")
}

// TestRegionsOfLargeBlocksAreKept has regions of 4, 5 and 6 units above the largest class, and
// blocks that may leave a fourth of a region unused.
func TestRegionsOfLargeBlocksAreKept(t *testing.T) {
	const unit = 1280
	c := small()
	c.LargeWaste = 4
	a, f := openSlab(t, c, 0)
	four := take(t, a, 4*unit, 6*unit, 5*unit)
	giveBack(t, a, four...)
	require.Equal(t, 15*unit, int(a.Stats().Reserved))
	require.Equal(t, 15*unit, int(a.(*slab.Allocator).FreeBytes()))
	require.Equal(t, 6*unit, int(a.(power.Holes).LargestFree()))
	require.ErrorIs(t, a.Free(four[0]), alloc.ErrInvalidFree)

	got := take(t, a, 4*unit+1, 4*unit-1) // the smallest that serves, which is whole
	require.Equal(t, []device.Addr{four[2], four[0]}, got)
	require.Equal(t, 9*unit, int(a.Stats().Allocated))
	require.Zero(t, a.Stats().Releases)

	take(t, a, 4*unit) // more than a fourth of the region of 6 would be left, so that goes
	require.Equal(t, 13*unit, int(a.Stats().Reserved))
	require.Equal(t, uint64(1), a.Stats().Releases)
	giveBack(t, a, got...)
	require.Equal(t, 13*unit, int(a.Stats().Reserved))

	f.FailNext(2)
	n, err := power.Trim(a)
	require.ErrorIs(t, err, device.ErrInjected)
	require.Zero(t, n, "a refused region stays kept")
	take(t, a, 5*unit, 4*unit)
	require.Equal(t, 13*unit, int(a.Stats().Reserved))
}

// TestKeptRegionsMakeRoom has a device of 8 KiB that a kept region fills.
func TestKeptRegionsMakeRoom(t *testing.T) {
	c := small()
	c.LargeWaste = 4
	a, _ := openSlab(t, c, 8192)
	giveBack(t, a, take(t, a, 8192)...)
	take(t, a, 256)
	require.Equal(t, 2048, int(a.Stats().Reserved))
}

// TestKeptRegionsCostNoMemory compares with an allocator that returns them at once. Sizes recur, so
// that no bytes of a kept region are unused.
func TestKeptRegionsCostNoMemory(t *testing.T) {
	c := small()
	returns, _ := openSlab(t, c, 0)
	c.LargeWaste = 2
	keeps, _ := openSlab(t, c, 0)
	for _, a := range []alloc.Strategy{returns, keeps} {
		live := take(t, a, 256, 2048, 16384)
		for i := range 300 {
			at := i * 7 % 3
			giveBack(t, a, live[at])
			live[at] = take(t, a, []device.Size{256, 2048, 16384}[i%3])[0]
		}
	}
	require.LessOrEqual(t, keeps.Stats().PeakReserved, returns.Stats().PeakReserved)
	require.Less(t, 2*keeps.Stats().Reserves, returns.Stats().Reserves)
}

func TestAlignmentMovesARequestUp(t *testing.T) {
	a, _ := openSlab(t, small(), 0)
	for _, c := range []struct {
		size, align, granted device.Size
		err                  error
	}{
		{1, 256, 256, nil}, {1, 512, 512, nil}, {257, 1024, 1024, nil}, {1, 2048, 256, nil}, {1, 2 * device.MiB, 256, nil},
		{1, 4 * device.MiB, 0, alloc.ErrInvalidRequest}, {1, 3, 0, alloc.ErrInvalidRequest},
		{0, 0, 0, alloc.ErrInvalidRequest},
		{1 << 61, 0, 0, alloc.ErrInvalidRequest},
	} {
		b, err := a.Alloc(alloc.Request{Size: c.size, Align: c.align})
		require.ErrorIs(t, err, c.err)
		require.Equal(t, c.granted, b.Size, c)
		require.True(t, c.err != nil || b.Addr.IsAligned(c.align))
	}
}

func TestLimitIsOfEverything(t *testing.T) {
	c := small()
	c.Limit = 4096
	a, _ := openSlab(t, c, 0)
	take(t, a, 256, 2048)
	_, err := a.Alloc(alloc.Request{Size: 1025})
	require.ErrorIs(t, err, alloc.ErrOutOfMemory)
	r, _ := power.LastRefusal(a)
	require.Equal(t, power.ReasonLimit, r.Reason)
	require.Equal(t, 4096, int(a.Stats().Reserved))
}

// TestStarvationIsOver replays the vectors on which the original holds up to 32 times what
// is live.
func TestStarvationIsOver(t *testing.T) {
	all, err := vectors.All()
	require.NoError(t, err)
	seen := 0
	for _, v := range all {
		most := map[string]float64{
			"slab/E_starve_20k": 1.1, "slab_buddy/E_starve_20k": 1.1,
			"slab/C_rr_imbalance_5k": 1.1, "slab_buddy/E_rr_imbalance_5k": 1.1,
		}[v.ID()]
		if most == 0 {
			continue
		}
		seen++
		events, err := v.Trace()
		require.NoError(t, err)
		for name, config := range map[string]string{
			"bare": `{}`, "streams": `{"segments":8}`, "turns": `{"segments":32,"assign":"round-robin"}`,
		} {
			most := most
			setup, err := catalogue().Lookup("slab", json.RawMessage(config))
			require.NoError(t, err)
			d, err := sim.New(sim.Config{})
			require.NoError(t, err)
			r, err := replay.Run(events, setup, d, replay.Options{})
			require.NoError(t, err)
			t.Logf("%s %s: %.3f", v.ID(), name, float64(r.Peak.Reserved)/float64(r.Peak.Requested))
			if name == "turns" {
				most = 1.2 // each segment begins a slab of its own
			}
			require.Less(t, float64(r.Peak.Reserved), most*float64(r.Peak.Requested), "%s %s", v.ID(), name)
		}
	}
	require.Equal(t, 4, seen)
}

// catalogue has nothing but the slab.
func catalogue() setting.Catalogue {
	return setting.Catalogue{setting.SpecOf("slab", "slab", slab.New)}
}

// TestOverOtherStrategies verifies slabs whose regions are blocks of a strategy below. The
// device's account is then not theirs.
func TestOverOtherStrategies(t *testing.T) {
	below := map[string]func(device.Source) (alloc.Strategy, error){
		"bfc": func(src device.Source) (alloc.Strategy, error) {
			return bfc.New(src, bfc.Config{Variant: "2026", Limit: device.MiB, AllowGrowth: true})
		},
		"buddy": func(src device.Source) (alloc.Strategy, error) {
			return buddy.New(src, buddy.Config{RegionBytes: device.MiB, BlockBytes: 4096})
		},
	}
	for name, open := range below {
		t.Run(name, func(t *testing.T) {
			c := small()
			c.MagazineRounds, c.Release = 4, true
			c, err := c.WithDefaults()
			require.NoError(t, err)
			s := props.SubjectOf(name, func(src device.Source, c slab.Config) (alloc.Strategy, error) {
				parent, err := open(src)
				if err != nil {
					return nil, err
				}
				return slab.New(wrap.SourceOf(parent), c)
			}, c, sim.Config{Capacity: device.MiB, Align: 256}, c.Promises())
			for _, n := range []string{"I2", "I11", "I19", "I27", "I32", "I34", "I65"} {
				s.Promises.Except = append(s.Promises.Except, promise.Exception{Invariant: n, Reason: "the device is the parent's"})
			}
			propstest.Verify(t, s, props.Options{Sequences: 200, Operations: 100, Seed: 1})
		})
	}
}

func TestConfigErrors(t *testing.T) {
	for text, want := range map[string]string{
		`{"quantum":3}`:                               `slab: quantum 3: want a power of two of at most 1GiB`,
		`{"slab_bytes":3}`:                            `slab: slab_bytes 3: want a power of two of 1 to 4096 quanta of 256`,
		`{"slab_bytes":2097152}`:                      `slab: slab_bytes 2097152: want a power of two of 1 to 4096 quanta of 256`,
		`{"slab_slots":-1}`:                           `slab: slab_slots -1: want 1 to 1024`,
		`{"slab_slots":1025}`:                         `slab: slab_slots 1025: want 1 to 1024`,
		`{"max_class_bytes":255}`:                     `slab: max_class_bytes 255: want 256 to 1073741824`,
		`{"max_class_bytes":1073741825}`:              `slab: max_class_bytes 1073741825: want 256 to 1073741824`,
		`{"max_class_bytes":"1GiB"}`:                  ``,
		`{"max_class_bytes":"1TiB","quantum":262144}`: ``,
		`{"max_class_bytes":"2TiB","quantum":"1MiB"}`: `slab: max_class_bytes 2199023255552: want 1048576 to 1099511627776`,
		`{"quantum":16384}`:                           ``,
		`{"quantum":16384,"slab_bytes":8192}`:         `slab: slab_bytes 8192: want a power of two of 1 to 4096 quanta of 16384`,
		`{"quantum":1}`:                               ``,
		`{"quantum":"1GiB"}`:                          ``,
		`{"quantum":"1GiB","growth":"whole"}`:         ``,
		`{"quantum":1,"growth":"whole"}`:              ``,
		`{"waste":-1}`:                                `slab: waste -1: want 1 to 4096`,
		`{"large_waste":1}`:                           `slab: large_waste 1: want 0, or 2 to 4096`,
		`{"large_waste":4097}`:                        `slab: large_waste 4097: want 0, or 2 to 4096`,
		`{"classes":"k3"}`:                            `slab: classes "k3": want "pow2", "k2", "k4" or "k8"`,
		`{"classes":"k4","class_sizes":[1]}`:          `slab: classes "k4": not used with class_sizes`,
		`{"class_sizes":[0]}`:                         `slab: class_sizes: 0: want 1 to max_class_bytes 262144`,
		`{"class_sizes":[1000000]}`:                   `slab: class_sizes: 1000000: want 1 to max_class_bytes 262144`,
		`{"class_sizes":[768],"waste":64}`:            `slab: class_sizes: 768: leaves more than one part in 64 of a slab of 8192`,
		`{"segments":-1}`:                             `slab: segments -1: want 0 to 4096`,
		`{"empty_slabs":-1}`:                          `slab: empty_slabs -1: want 0 to 1048576`,
		`{"magazine_rounds":4097}`:                    `slab: magazine_rounds 4097: want 0 to 4096`,
		`{"magazine_rounds":1,"depot":65537}`:         `slab: depot 65537: want 0 to 65536`,
		`{"depot":1}`:                                 `slab: depot 1: needs magazine_rounds`,
		`{"assign":"thread"}`:                         `slab: assign "thread": want "stream" or "round-robin"`,
		`{"steal":"maybe"}`:                           `slab: steal "maybe": want "on" or "off"`,
		`{"selection":"best"}`:                        `slab: selection "best": want "fullest", "emptiest", "lifo", "fifo" or "lowest"`,
		`{"growth":"often"}`:                          `slab: growth "often": want "fixed", "doubling", "request", "proportional" or "whole"`,
		`{"region_bytes":100}`:                        `slab: region_bytes 100: want a multiple of 8192`,
		`{"growth":"whole","max_class_bytes":"1MiB"}`: `slab: max_class_bytes 1048576: slabs of several sizes do not share one region, want at most 131072 with growth "whole"`,
		`{"keep_bytes":1}`:                            `slab: keep_bytes 1: needs release`,
		`{"region_bytes":"256GiB"}`:                   `slab: region_bytes 274877906944, limit 0: want at most 16777216 slabs of 8192 in a region`,
		`{}`:                                          ``,
		`{"growth":"whole"}`:                          ``,
		`{"slab_bytes":"1MiB","slab_slots":1,"max_class_bytes":"1MiB","selection":"lowest"}`: ``,
	} {
		_, err := catalogue().Lookup("slab", json.RawMessage(text))
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		require.EqualError(t, err, want, text)
	}
}

func TestDefaultsStay(t *testing.T) {
	for _, c := range []slab.Config{{}, {Growth: "whole"}, {MagazineRounds: 1}, {ClassSizes: []device.Size{1000}},
		{SlabBytes: 512, SlabSlots: 4}, {Quantum: 1, Growth: "whole"}, {Quantum: device.MiB}} {
		once, err := c.WithDefaults()
		require.NoError(t, err)
		twice, err := once.WithDefaults()
		require.NoError(t, err)
		require.Equal(t, once, twice)
	}
	require.Equal(t, device.GiB, slab.Config{Growth: "whole"}.ForCapacity(device.GiB).Limit)
	require.Zero(t, slab.Config{}.ForCapacity(device.GiB).Limit)
}

func TestClassesHaveSlabsOfManySlots(t *testing.T) {
	c, err := slab.Config{}.WithDefaults()
	require.NoError(t, err)
	for size, want := range map[device.Size]cells.Class{
		1:                {Slot: 256, Slab: 8 * device.KiB, Align: 8 * device.KiB},
		1024:             {Slot: 1024, Slab: 8 * device.KiB, Align: 8 * device.KiB},
		1025:             {Slot: 1280, Slab: 32 * device.KiB, Align: 32 * device.KiB},
		256 * device.KiB: {Slot: 256 * device.KiB, Slab: 2 * device.MiB, Align: 2 * device.MiB},
	} {
		k, ok := c.ClassOf(size)
		require.True(t, ok)
		require.Equal(t, want, k)
	}
}

// TestFreshSlicesAreOneChunk has a region of eight slices, of which two become slabs and are
// given up again: what no slab ever had is one chunk until it is cut.
func TestFreshSlicesAreOneChunk(t *testing.T) {
	const slice = device.KiB
	a, _ := openSlab(t, slab.Config{
		SlabBytes: slice, SlabSlots: 1, MaxClassBytes: slice, RegionBytes: 8 * slice, Growth: "fixed",
	}, device.MiB)
	free := func(want ...device.Size) {
		t.Helper()
		var sizes []device.Size
		for c := range a.Walk {
			if c.State == alloc.Free {
				sizes = append(sizes, c.Size/slice)
			}
		}
		require.Equal(t, want, sizes)
		require.Equal(t, slices.Max(sizes)*slice, power.LargestFree(a))
		sizes = sizes[:0]
		for c := range a.(power.FreeWalker).WalkFree {
			sizes = append(sizes, c.Size/slice)
		}
		require.Equal(t, want, sizes)
		require.NoError(t, a.Check())
	}
	blocks := take(t, a, slice)
	free(7)
	blocks = append(blocks, take(t, a, slice)...)
	free(6)
	giveBack(t, a, blocks[0])
	free(1, 6)
	giveBack(t, a, blocks[1])
	free(1, 1, 6)
	blocks = take(t, a, slice, slice, slice, slice, slice, slice, slice)
	free(1)
	giveBack(t, a, blocks[6])
	free(1, 1)
}

// TestWalkOfAFreshRegionIsShort has a region of two TiB.
func TestWalkOfAFreshRegionIsShort(t *testing.T) {
	a, _ := openSlab(t, slab.Config{Growth: "whole", Limit: 2 * device.TiB}, 2*device.TiB)
	take(t, a, 1, 100_000)
	n := 0
	for range a.Walk {
		n++
	}
	require.Less(t, n, 5000)
	require.NoError(t, a.Check())
}
