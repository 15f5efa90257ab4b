package props

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// freedBlocks returns a model in which the blocks at 0, 100 and 200, of 100 bytes each, were
// freed in that order, at counts 1 to 3.
func freedBlocks() *Model {
	m := &Model{}
	for i := range uint64(3) {
		b := alloc.Block{Addr: 1000 + 100*device.Addr(i), Size: 100}
		m.grant(Grant{ID: i + 1, Request: alloc.Request{Size: 100}, Block: b})
		m.release(b.Addr)
	}
	return m
}

// TestRecency looks at free chunks that are as unsafe as they must be, and at some that are not.
func TestRecency(t *testing.T) {
	free := func(from, size, count uint64) alloc.Chunk {
		return alloc.Chunk{Region: 1000, Addr: 1000 + device.Addr(from), Size: device.Size(size), State: alloc.Free,
			FreedAt: count}
	}
	m := freedBlocks()
	require.NoError(t, Recency([]alloc.Chunk{free(0, 100, 1), free(100, 200, 3), free(300, 50, 0)}, m))
	require.ErrorContains(t, Recency([]alloc.Chunk{free(0, 300, 2)}, m), "allocation 3 was freed at 3")
	require.ErrorContains(t, Recency([]alloc.Chunk{free(0, 100, 0), free(100, 200, 3)}, m), "allocation 1 was freed at 1")
	m.stamps.raise(2)
	require.NoError(t, Recency([]alloc.Chunk{free(0, 100, 0), free(100, 100, 2), free(200, 100, 3)}, m))
	require.Error(t, Recency([]alloc.Chunk{free(100, 100, 0)}, m), "a free at the frontier is not below it")
	m.released(1)
	require.NoError(t, Recency([]alloc.Chunk{free(0, 300, 0)}, m), "memory went back and came again")
}

// TestInBound asks for memory freed up to some count.
func TestInBound(t *testing.T) {
	m := freedBlocks()
	block := func(from uint64) alloc.Block { return alloc.Block{Addr: 1000 + device.Addr(from), Size: 100} }
	require.NoError(t, InBound(block(100), alloc.Request{Before: 2}, m))
	require.NoError(t, InBound(block(200), alloc.Request{}, m))
	require.NoError(t, InBound(block(300), alloc.Request{Before: 1}, m))
	require.ErrorContains(t, InBound(block(150), alloc.Request{Before: 2}, m), "allocation 3 was freed at 3")
	m.stamps.raise(4)
	require.NoError(t, InBound(block(150), alloc.Request{Before: 2}, m))
}
