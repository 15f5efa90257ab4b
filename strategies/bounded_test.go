package strategies_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies"
)

// fitted are configurations for presets whose largest request is so small beside their
// region that a long run would never need a second one, or that keep so much that nothing goes
// back in the first quarter.
var fitted = map[string]string{
	"slab:xdl":    `{"region_bytes":"8MiB"}`,
	"vmm:release": `{"keep_bytes":"64MiB"}`,
}

// wasteful are presets that need more than 2.25 times the memory in use, by the rules of their
// originals. None of them goes on growing: they pass like the others.
var wasteful = map[string]struct {
	most   float64 // times the bytes in use at most
	reason string
}{
	"buddy:xdl": {2.5, "sizes are rounded up to powers of two, and a small block keeps its buddy from a " +
		"large one"},
	"buddy":              {3.25, smallIsKept},
	"buddy:whole":        {3, "sizes are rounded up to powers of two, and a small block keeps its buddy from a large one"},
	"buddy:fibonacci":    {3.25, smallIsKept},
	"buddy:lazy":         {3.25, smallIsKept},
	"buddy:regions":      {2.5, smallIsKept},
	"slabbuddy:xdl":      {2.5, "as its buddy part"},
	"slab":               {3, largerIsTheDevices},
	"direct":             {3, "where a block lies is the device's choice, which has addresses to waste"},
	"slab:magazines":     {3, largerIsTheDevices},
	"slab:streams":       {3, largerIsTheDevices},
	"slab:kept":          {3, largerIsTheDevices},
	"slab:uniform":       {4, largerIsTheDevices},
	"slabbuddy":          {3.5, largerIsTheDevices},
	"slabbuddy:fast":     {3.5, largerIsTheDevices},
	"slabbuddy:lean":     {2.5, largerIsTheDevices},
	"slabbuddy:pages":    {3.5, largerIsTheDevices},
	"slabbuddy:onepool":  {2.5, "as buddy's: its sizes are XDL's"},
	"recall:pages":       {12, aliasesOnly},
	"recall:graph":       {12, aliasesOnly},
	"stitch":             {15, "the ranges of sBlocks, of which it keeps 512, have no memory of their own"},
	"stitch:paper":       {2.5, "blocks of a few pages get segments of their own, which do not merge"},
	"caching":            {3, streamsAndPools},
	"caching:2.6":        {3, streamsAndPools},
	"caching:2.12":       {3, streamsAndPools},
	"caching:2.13":       {3, streamsAndPools},
	"caching:mended":     {3, streamsAndPools},
	"caching:expandable": {5, "a range takes the addresses of another one that went back, and fills them in another way"},
	"caching:split":      {5, tooLargeToSplit},
	"slab:blaze": {12, "a class that shrinks never feeds another, so each of a dozen magnitudes keeps the " +
		"memory of its best time"},
}

// largerIsTheDevices is why they touch more addresses than they hold bytes.
const largerIsTheDevices = "where a block above the largest class lies is the device's choice, which has " +
	"addresses to waste"

// aliasesOnly is why recall over pages touches more addresses than it holds bytes.
const aliasesOnly = "alias windows, together up to twice the bytes held, have no memory of their own"

// streamsAndPools is why PyTorch's allocator holds more than in a program of one stream.
const streamsAndPools = "each stream and each private pool has segments of its own, which serve nobody else"

// tooLargeToSplit is why PyTorch's allocator holds ever more if large blocks may not be split.
const tooLargeToSplit = "such a block serves only requests nearly as large, and segments go back only when the " +
	"device refuses"

// smallIsKept is why a modern buddy touches more than it holds in use when sizes grow.
const smallIsKept = "regions that small blocks leave empty go back only when the device refuses"

// unbounded are presets whose memory, or the addresses of it, go on growing in a pattern while the
// bytes in use do not, with the rule that makes them.
var unbounded = map[string]string{
	"caching:split/steady":  tooLargeToSplit,
	"caching:split/queue":   tooLargeToSplit,
	"caching:split/streams": tooLargeToSplit,
	"recall:graph/captures": "windows of pools that come and go visit ever more addresses; the bytes held do not grow",
}

// patient are presets that stop growing only after twice as many calls as the others get.
var patient = map[string]bool{"caching:expandable": true, "recall:pages": true, "recall:graph": true}

// TestMemoryStaysBounded churns through every name of the catalogue: 100 000 calls for each
// pattern of sizes and lifetimes, half of them with -short.
func TestMemoryStaysBounded(t *testing.T) {
	for _, name := range strategies.All().Names() {
		calls := 100_000
		switch {
		case patient[name]:
			calls *= 2
		case testing.Short():
			calls /= 2
		}
		setup, err := strategies.All().Lookup(name, json.RawMessage(fitted[name]))
		require.NoError(t, err)
		subject := props.SubjectOfSetup(setup, sim.Config{})
		patterns, err := props.Patterns(subject)
		require.NoError(t, err)
		for _, pattern := range patterns {
			t.Run(name+"/"+string(pattern), func(t *testing.T) {
				t.Parallel()
				g, err := props.Bounded(subject, props.Churn{Pattern: pattern, Operations: calls})
				t.Log(g)
				if reason, ok := unbounded[name+"/"+string(pattern)]; ok {
					require.Error(t, err, "it is bounded, and excused because: %s", reason)
					return
				}
				require.NoError(t, err)
				most, reason := 2.25, "sizes are rounded and free memory is scattered"
				if w, ok := wasteful[name]; ok {
					most, reason = w.most, w.reason
				}
				assert.Less(t, float64(g.Touched)/float64(g.PeakLive), most, reason)
			})
		}
	}
}
