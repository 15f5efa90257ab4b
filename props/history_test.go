package props_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/props"
)

// TestHistoryOfRanges maps and unmaps memory of a range of 256 bytes.
func TestHistoryOfRanges(t *testing.T) {
	ranges := []device.Region{{Addr: base, Size: 256}}
	walk := func(states ...alloc.State) []alloc.Chunk { return inState(walkOf(64, 64, 128), states...) }
	at := func(k power.ActionKind, offset, size device.Size) power.Action {
		return power.Action{Kind: k, Addr: base.Add(offset), Size: size}
	}
	check := func(before, after []alloc.Chunk, actions ...power.Action) error {
		return props.CallHistory(before, after, ranges, ranges, actions)
	}
	none, low, all := walk(alloc.Unmapped, alloc.Unmapped, alloc.Unmapped),
		walk(alloc.Free, alloc.Unmapped, alloc.Unmapped), walk()
	require.NoError(t, props.CallHistory(nil, low, nil, ranges, []power.Action{at(power.SegmentMap, 0, 64)}),
		"a new range")
	require.NoError(t, check(low, all, at(power.SegmentMap, 128, 128), at(power.SegmentMap, 64, 64)))
	require.NoError(t, check(all, low, at(power.SegmentUnmap, 64, 192)))
	require.NoError(t, check(low, low, at(power.SegmentMap, 64, 64), at(power.SegmentUnmap, 64, 64)))
	require.NoError(t, props.CallHistory(low, nil, ranges, nil, []power.Action{at(power.SegmentUnmap, 0, 64)}))

	for name, err := range map[string]error{
		"unreported":           check(none, low),
		"mapped twice":         check(low, all, at(power.SegmentMap, 0, 256)),
		"too little":           check(low, all, at(power.SegmentMap, 64, 64)),
		"not mapped":           check(low, none, at(power.SegmentUnmap, 0, 128)),
		"nothing":              check(low, low, at(power.SegmentMap, 64, 0)),
		"no bytes":             check(low, low, at(power.SegmentUnmap, 0, 0)),
		"unmapped, unreported": check(all, low, at(power.SegmentUnmap, 64, 64)),
		"a segment":            check(none, low, at(power.SegmentAlloc, 0, 64)),
		"no segment":           check(low, none, at(power.SegmentFree, 0, 64)),
	} {
		t.Run(name, func(t *testing.T) { requireBroken(t, props.IHistory, err) })
	}
}
