package props_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
)

// inState returns the walk with the states of its first chunks as given.
func inState(walk []alloc.Chunk, states ...alloc.State) []alloc.Chunk {
	for i, s := range states {
		walk[i].State = s
	}
	return walk
}

// mapped returns mappings of handle 1 that follow each other from base on.
func mapped(sizes ...device.Size) (maps []sim.Mapping) {
	at, offset := base, device.Size(0)
	for _, n := range sizes {
		maps = append(maps, sim.Mapping{Addr: at, Size: n, Handle: 1, Offset: offset, Access: device.AccessReadWrite})
		at, offset = at.Add(n), offset+n
	}
	return maps
}

func TestMapped(t *testing.T) {
	ranges := []device.Region{{Addr: base, Size: 256}}
	walk := func(states ...alloc.State) []alloc.Chunk { return inState(walkOf(64, -64, 128), states...) }
	all := mapped(128, 64, 64)
	require.NoError(t, props.Mapped(walk(), ranges, all))
	require.NoError(t, props.Mapped(walk(), nil, nil), "a region")
	require.NoError(t, props.Mapped(walk(alloc.Free, alloc.Live, alloc.Unmapped), ranges, all[:1]))
	require.NoError(t, props.Mapped(walk(alloc.Unmapped, alloc.Aliased), ranges, mapped(64, 64, 128)[1:]))

	requireBroken(t, props.IMapping, props.Mapped(walk(alloc.Unmapped), nil, nil))
	requireBroken(t, props.IMapping, props.Mapped(walk(alloc.Aliased), nil, nil))
	requireBroken(t, props.IMapping, props.Mapped(walk(), ranges, all[:2]))
	requireBroken(t, props.IMapping, props.Mapped(walk(), ranges, all[1:]))
	requireBroken(t, props.IMapping, props.Mapped(walk(), ranges, []sim.Mapping{all[0], all[2]}))
	requireBroken(t, props.IMapping, props.Mapped(walk(), ranges, nil))
	requireBroken(t, props.IMapping, props.Mapped(walk(alloc.Aliased), ranges, nil))
	requireBroken(t, props.IMapping, props.Mapped(walk(alloc.Unmapped), ranges, all))
	all[1].Access = device.AccessRead
	requireBroken(t, props.IMapping, props.Mapped(walk(), ranges, all))
}

func TestAliases(t *testing.T) {
	ranges := []device.Region{{Addr: base, Size: 512}}
	walk := func(states ...alloc.State) []alloc.Chunk { return inState(walkOf(128, 128, 256), states...) }
	// The memory of the first two chunks once more under the third, in the other order.
	maps := mapped(128, 128, 128, 128)
	maps[2].Offset, maps[3].Offset = 128, 0
	require.NoError(t, props.Aliases(walk(alloc.Free, alloc.Live, alloc.Aliased), ranges, maps))
	require.NoError(t, props.Aliases(walk(alloc.Aliased, alloc.Aliased, alloc.Live), ranges, maps))
	require.NoError(t, props.Aliases(walk(), nil, nil))

	requireBroken(t, props.IAlias, props.Aliases(walk(), ranges, maps))
	requireBroken(t, props.IAlias, props.Aliases(walk(alloc.Aliased, alloc.Live, alloc.Live), ranges, maps))
	requireBroken(t, props.IAlias, props.Aliases(walk(alloc.Aliased, alloc.Live, alloc.Aliased), ranges, maps))
	requireBroken(t, props.IAlias, props.Aliases(walk(alloc.Live, alloc.Aliased, alloc.Aliased), ranges, maps))
	requireBroken(t, props.IAlias, props.Aliases(walk(alloc.Aliased, alloc.Aliased, alloc.Aliased), ranges, maps))

	// A piece of one mapping under an aliased chunk, the rest of it elsewhere.
	pieces := []sim.Mapping{maps[0], maps[1], {Addr: base + 256, Size: 256, Handle: 1, Access: device.AccessReadWrite}}
	require.NoError(t, props.Aliases(walk(alloc.Free, alloc.Free, alloc.Aliased), ranges, pieces))
	pieces[2].Offset = 64
	requireBroken(t, props.IAlias, props.Aliases(walk(alloc.Free, alloc.Free, alloc.Aliased), ranges, pieces))
	pieces[2].Handle = 2
	requireBroken(t, props.IAlias, props.Aliases(walk(alloc.Free, alloc.Free, alloc.Aliased), ranges, pieces))
	require.NoError(t, props.Aliases(walk(), ranges, pieces))
}
