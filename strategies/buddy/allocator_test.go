package buddy_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/kit/regions"
	"github.com/vramyard/vramyard/strategies/buddy"
)

// unit is the smallest block of the tests here.
const unit = 256

// stack is a modern buddy with blocks of 256 bytes in regions of 16 of them, which lie 4 KiB
// apart, and names for its live blocks.
type stack struct {
	*buddy.Allocator
	t      *testing.T
	faults *device.Faults
	blocks map[string]alloc.Block
}

// build returns a stack over a device of so many units; c says what is not as usual.
func build(t *testing.T, capacity device.Size, c buddy.Config) *stack {
	t.Helper()
	return buildOn(t, sim.Config{Capacity: capacity * unit, Align: unit}, c)
}

// buildOn is build over a device that is told.
func buildOn(t *testing.T, on sim.Config, c buddy.Config) *stack {
	t.Helper()
	d, err := sim.New(on)
	require.NoError(t, err)
	f, err := device.NewFaults(d, device.FaultPlan{})
	require.NoError(t, err)
	c.BlockBytes = unit
	if c.RegionBytes == 0 {
		c.RegionBytes = 16 * unit
	}
	if c.Growth == "" {
		c.Growth = regions.Fixed
	}
	a, err := buddy.New(f, c)
	require.NoError(t, err)
	return &stack{a, t, f, map[string]alloc.Block{}}
}

// run makes calls, "name=units" or "-name", one after the other, and checks after each.
func (s *stack) run(script string) {
	s.t.Helper()
	for call := range strings.FieldsSeq(script) {
		if name, ok := strings.CutPrefix(call, "-"); ok {
			require.NoError(s.t, s.Free(s.blocks[name].Addr), call)
			delete(s.blocks, name)
		} else {
			name, units, _ := strings.Cut(call, "=")
			var n device.Size
			_, err := fmt.Sscan(units, &n)
			require.NoError(s.t, err)
			s.blocks[name], err = s.Alloc(alloc.Request{Size: n * unit})
			require.NoError(s.t, err, call)
		}
		require.NoError(s.t, s.Check(), call)
	}
}

// at returns where a block lies: region by address, and units from its start.
func (s *stack) at(name string) string {
	s.t.Helper()
	var bases []device.Addr
	for c := range s.Walk {
		if !slices.Contains(bases, c.Region) {
			bases = append(bases, c.Region)
		}
		if c.Addr == s.blocks[name].Addr {
			return fmt.Sprintf("%d:%d", len(bases)-1, c.Addr.Sub(c.Region)/unit)
		}
	}
	s.t.Fatalf("no block %q", name)
	return ""
}

// shape returns the chunks of the walk in units: f for free, regions apart.
func (s *stack) shape() string {
	var b strings.Builder
	var region device.Addr
	for c := range s.Walk {
		if c.Region != region && b.Len() > 0 {
			b.WriteString("|")
		} else if b.Len() > 0 {
			b.WriteString(" ")
		}
		region = c.Region
		if c.State == alloc.Free {
			b.WriteString("f")
		}
		fmt.Fprint(&b, uint64(c.Size/unit))
	}
	return b.String()
}

func TestModernConfigErrors(t *testing.T) {
	for _, c := range []struct{ json, want string }{
		{`{"family":"odd"}`, `buddy: family "odd": want one of binary, weighted, fibonacci, k4, k8`},
		{`{"trim":"yes"}`, `buddy: trim "yes": want one of off, on`},
		{`{"placement":"best"}`, `buddy: placement "best": want one of smallest, newest, leftmost, top-down`},
		{`{"region_choice":"any"}`, `buddy: region_choice "any": want one of oldest, fullest, lowest`},
		{`{"coalescing":"late"}`, `buddy: coalescing "late": want one of eager, lazy, failure`},
		{`{"growth":"fast"}`, `buddy: growth "fast": want one of request, fixed, doubling, proportional, whole`},
		{`{"block_bytes":3}`, `buddy: block_bytes 3: want a power of two up to 2MiB`},
		{`{"block_bytes":4194304}`, `buddy: block_bytes 4194304: want a power of two up to 2MiB`},
		{`{"region_bytes":1000}`, `buddy: region_bytes 1000: want a multiple of 512`},
		{`{"region_bytes":549755813888,"block_bytes":1}`, `buddy: region_bytes 549755813888: want at most 2147483648 blocks`},
		{`{"trim":"on","trim_bytes":700}`, `buddy: trim_bytes 700: want a multiple of block_bytes 512`},
		{`{"trim_bytes":1024}`, `buddy: trim_bytes 1024: not used with trim "off"`},
		{`{"coalescing":"lazy","slack":-1}`, `buddy: slack -1: want 0 to 2^31-1`},
		{`{"slack":1}`, `buddy: slack 1: not used with coalescing "eager"`},
		{`{"direct_bytes":2305843009213693952}`, `buddy: direct_bytes 2305843009213693952: want at most 1EiB`},
		{`{"direct_cache_bytes":2305843009213693952}`, `buddy: direct_cache_bytes 2305843009213693952: want at most 1EiB`},
		{`{"growth":"whole","limit":1099511628288}`,
			`buddy: limit 1099511628288: want at most 2147483648 blocks with growth "whole"`},
		{`{"growth":"whole","release":true}`, `buddy: release: not used with growth "whole"`},
		{`{"keep_bytes":1}`, `buddy: keep_bytes 1: needs release`},
		{`{}`, ``},
		{`{"growth":"whole","limit":1099511627776}`, ``},
	} {
		var cfg buddy.Config
		require.NoError(t, json.Unmarshal([]byte(c.json), &cfg))
		_, err := buddy.New(nil, cfg)
		if c.want == "" {
			require.NoError(t, err, c.json)
		} else {
			require.EqualError(t, err, c.want, c.json)
		}
	}
}

func TestSplitsByTheRuleOfTheFamily(t *testing.T) {
	for family, want := range map[string]string{
		buddy.Binary:           "1 f1 f2 f4 f8",
		buddy.Weighted:         "f12 f3 1",      // 16 = 12+4, 4 = 3+1
		buddy.Fibonacci:        "f8 f3 f1 1 f3", // 13 and 3; 3 = 2+1, 5 = 3+2 is not reached
		buddy.FourPerDoubling:  "f14 1 f1",      // 16 = 14+2, 2 = 1+1
		buddy.EightPerDoubling: "f15 1",         // 16 = 15+1
	} {
		s := build(t, 16, buddy.Config{Family: family, Trim: buddy.TrimOn})
		s.run("a=1")
		if family == buddy.Fibonacci {
			want = "f13 f2 1"
		}
		require.Equal(t, want, s.shape(), family)
		s.run("-a")
		require.Equal(t, map[bool]string{true: "f13 f3", false: "f16"}[family == buddy.Fibonacci], s.shape(), family)
	}
}

func TestRegionOfAnySizeIsUsedToItsEnd(t *testing.T) {
	s := build(t, 23, buddy.Config{RegionBytes: 23 * unit})
	s.run("a=1 -a")
	require.Equal(t, "f16 f4 f2 f1", s.shape())
	s.run("a=16 b=4 c=2 d=1")
	require.Equal(t, "16 4 2 1", s.shape())
}

// TestBlockOfMostUnits has the only block whose units take 32 bits, beside a direct one.
func TestBlockOfMostUnits(t *testing.T) {
	const most = 1 << 31
	s := build(t, 0, buddy.Config{RegionBytes: most * unit, DirectBytes: most * unit})
	s.run("a=2147483648 d=2147483649")
	require.Equal(t, "2147483648|2147483649", s.shape())
	s.run("-a")
	require.Equal(t, "f2147483648|2147483649", s.shape())
	s.run("b=1073741825")
	require.Equal(t, "2147483648|2147483649", s.shape())
	require.Equal(t, uint64(2), s.Stats().Reserves)
	s.run("-d -b c=1")
	require.Equal(t, "0:0", s.at("c"))
	s.run("-c")
	require.Equal(t, "f2147483648|f2147483649", s.shape())
}

func TestTrimGivesTheTailBack(t *testing.T) {
	for _, c := range []struct {
		trim  string
		grain device.Size
		want  string
	}{
		{buddy.TrimOff, 0, "8 f8"},
		{buddy.TrimOn, 0, "5 f1 f2 f8"},
		{buddy.TrimOn, 2 * unit, "6 f2 f8"},
		{buddy.TrimOn, 3 * unit, "6 f2 f8"},
		{buddy.TrimOn, 4 * unit, "8 f8"},
	} {
		s := build(t, 16, buddy.Config{Trim: c.trim, TrimBytes: c.grain})
		s.run("a=5")
		require.Equal(t, c.want, s.shape())
		s.run("-a")
		require.Equal(t, "f16", s.shape())
	}
}

func TestTailsMergeAcrossBlocks(t *testing.T) {
	s := build(t, 16, buddy.Config{Trim: buddy.TrimOn})
	s.run("a=5 b=1 c=2")
	require.Equal(t, "5 1 2 f8", s.shape())
	s.run("-a")
	require.Equal(t, "f4 f1 1 2 f8", s.shape())
	s.run("-c")
	require.Equal(t, "f4 f1 1 f2 f8", s.shape())
	s.run("-b")
	require.Equal(t, "f16", s.shape())
}

func TestPlacements(t *testing.T) {
	// Left free are 4 units at 0, 2 at 10 and then 1 at 15.
	const holes = "a=4 b=4 c=2 d=2 e=2 f=1 g=1 -a -d -g"
	for placement, want := range map[string]string{
		buddy.Smallest: "0:15", buddy.SmallestNewest: "0:15", buddy.Leftmost: "0:0", buddy.TopDown: "0:15",
	} {
		s := build(t, 16, buddy.Config{Placement: placement})
		if placement != buddy.TopDown {
			s.run(holes + " x=1")
			require.Equal(t, want, s.at("x"), placement)
			continue
		}
		s.run("x=1 y=4")
		require.Equal(t, []string{want, "0:8"}, []string{s.at("x"), s.at("y")}, placement)
	}
}

func TestNewestComesFirst(t *testing.T) {
	s := build(t, 16, buddy.Config{Placement: buddy.SmallestNewest})
	s.run("a=1 b=1 c=1 d=1 e=1 f=1 g=1 h=1 -a -c -g x=1")
	require.Equal(t, "0:6", s.at("x"))
	s.run("y=1")
	require.Equal(t, "0:2", s.at("y"))
}

func TestHintForTheHighEnd(t *testing.T) {
	for _, placement := range []string{buddy.Smallest, buddy.SmallestNewest, buddy.Leftmost, buddy.TopDown} {
		s := build(t, 16, buddy.Config{Placement: placement})
		b, err := s.Alloc(alloc.Request{Size: 2 * unit, Hint: alloc.HintHigh})
		require.NoError(t, err)
		require.NoError(t, s.Check())
		require.Equal(t, sim.Base.Add(14*unit), b.Addr, placement)
	}
}

func TestRegionChoice(t *testing.T) {
	for _, c := range []struct {
		choice string
		policy sim.Policy
		want   string
	}{
		{buddy.Oldest, sim.FirstFit, "0:8"},
		{buddy.Oldest, sim.TopDown, "2:8"},
		{buddy.Fullest, sim.FirstFit, "2:8"},
		{buddy.Fullest, sim.TopDown, "0:8"},
		{buddy.Lowest, sim.FirstFit, "0:8"},
		{buddy.Lowest, sim.TopDown, "0:8"},
	} {
		s := buildOn(t, sim.Config{Align: unit, Policy: c.policy}, buddy.Config{RegionChoice: c.choice})
		// Of the first region a quarter is used, of the last a half. Both have 8 units free.
		s.run("a=4 a1=4 a2=8 b=16 c=8 c1=8 -a1 -a2 -c1 x=8")
		require.Equal(t, c.want, s.at("x"), "%s, %s", c.choice, c.policy)
	}
}

func TestCoalescing(t *testing.T) {
	for _, c := range []struct {
		coalescing string
		slack      int
		want       string
	}{
		{buddy.Eager, 0, "f16"},
		{buddy.Lazy, 1, "f1 f1 f2 f4 f8"},
		{buddy.Lazy, 2, "f1 f1 f2 f4 f8"},
		{buddy.OnFailure, 0, "f1 f1 f2 f4 f8"},
	} {
		s := build(t, 16, buddy.Config{Coalescing: c.coalescing, Slack: c.slack})
		s.run("a=1 b=1 -b")
		s.run("-a")
		if c.coalescing == buddy.Lazy && c.slack == 1 {
			require.Equal(t, "f16", s.shape(), "the second of a class with one free block is merged, and so on up")
		} else {
			require.Equal(t, c.want, s.shape(), c.coalescing)
		}
		s.run("x=16")
		require.Equal(t, "16", s.shape(), "before memory runs out all is merged")
	}
}

func TestAlignmentBeyondTheBlock(t *testing.T) {
	for _, family := range []string{buddy.Binary, buddy.Weighted, buddy.Fibonacci, buddy.FourPerDoubling,
		buddy.EightPerDoubling} {
		for _, trim := range []string{buddy.TrimOff, buddy.TrimOn} {
			s := build(t, 0, buddy.Config{Family: family, Trim: trim, DirectBytes: device.GiB})
			for align := device.Size(1); align <= 2*device.MiB; align *= 2 {
				b, err := s.Alloc(alloc.Request{Size: 3*unit - 1, Align: align})
				require.NoError(t, err)
				require.True(t, b.Addr.IsAligned(align), "%s: %v", family, align)
				require.NoError(t, s.Check())
			}
			_, err := s.Alloc(alloc.Request{Size: 1, Align: 4 * device.MiB})
			require.ErrorIs(t, err, alloc.ErrInvalidRequest)
		}
	}
}

func TestDirectRegionsAreReused(t *testing.T) {
	s := build(t, 200, buddy.Config{DirectBytes: 16 * unit, DirectCacheBytes: 60 * unit})
	s.run("a=17 b=20 c=36")
	require.Equal(t, "17|20|36", s.shape())
	s.run("-a -b x=18")
	require.Equal(t, "f17|18|36", strings.Replace(s.shape(), "20", "18", 1), "of those within an eighth the smallest")
	require.Equal(t, device.Size(20*unit), s.blocks["x"].Size)
	s.run("-x")
	s.run("-c") // 73 units are more than may be kept: the oldest goes
	require.Equal(t, "f20|f36", s.shape())
	s.run("y=32")
	require.Equal(t, "f20|36", s.shape())
	s.run("z=31")
	require.Equal(t, uint64(4), s.Stats().Reserves, "36 is more than an eighth above 31")
}

func TestWhatIsEmptyGoesBackBeforeMemoryRunsOut(t *testing.T) {
	s := build(t, 64, buddy.Config{DirectBytes: 32 * unit})
	s.run("a=16 b=16 keep=1 -a -b x=48")
	require.Equal(t, "48|1 f1 f2 f4 f8", s.shape())
	_, err := s.Alloc(alloc.Request{Size: 16 * unit})
	require.ErrorIs(t, err, alloc.ErrOutOfMemory)
	r, ok := s.LastRefusal()
	require.True(t, ok)
	require.Equal(t, power.ReasonDevice, r.Reason)
	require.Equal(t, device.Size(16*unit), r.Asked)
	require.Equal(t, device.Size(8*unit), r.LargestHole)
	require.Equal(t, device.Size(15*unit), r.Free)
}

func TestRegionOfItsOwnWhereNoBlockFits(t *testing.T) {
	s := build(t, 21, buddy.Config{})
	s.run("a=17") // a block would have 32 units
	require.Equal(t, "17", s.shape())
}

func TestReleaseAboveTheWatermark(t *testing.T) {
	s := build(t, 64, buddy.Config{Release: true, KeepBytes: 16 * unit})
	s.run("a=16 b=16 c=16 -a")
	require.Equal(t, "f16|16|16", s.shape())
	s.run("-b")
	require.Equal(t, "f16|16", s.shape())
	s.faults.FailNext(1)
	s.run("-c")
	require.Equal(t, "f16|f16", s.shape(), "what the device does not take back stays")
	n, err := s.Trim()
	require.NoError(t, err)
	require.Equal(t, device.Size(32*unit), n)
	s.run("d=1")
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Free(s.blocks["d"].Addr), alloc.ErrClosed)
	_, err = s.Trim()
	require.ErrorIs(t, err, alloc.ErrClosed)
}

// TestOnlyHoleAmongManyRegionsIsFound counts no time: it shows that the search sees one region
// for each class, by filling thousands of regions and finding the only hole at once.
func TestOnlyHoleAmongManyRegionsIsFound(t *testing.T) {
	for _, choice := range []string{buddy.Oldest, buddy.Fullest, buddy.Lowest} {
		s := build(t, 0, buddy.Config{RegionBytes: 4 * unit, RegionChoice: choice})
		var all []alloc.Block
		for range 3000 {
			b, err := s.Alloc(alloc.Request{Size: 4 * unit})
			require.NoError(t, err)
			all = append(all, b)
		}
		rng := rand.New(rand.NewPCG(7, 7))
		for range 50 {
			i := rng.IntN(len(all))
			require.NoError(t, s.Free(all[i].Addr))
			b, err := s.Alloc(alloc.Request{Size: 3 * unit})
			require.NoError(t, err)
			require.Equal(t, all[i].Addr, b.Addr, choice)
		}
		require.NoError(t, s.Check())
		require.Equal(t, 3000, s.Stats().Regions)
	}
}
