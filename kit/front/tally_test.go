package front_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/kit/front"
)

// good is a walk of two regions, and counters that agree with it.
func good() (alloc.Stats, []alloc.Chunk) {
	return alloc.Stats{Regions: 2, Reserved: 640, Live: 1, Requested: 60, Allocated: 64, Active: 192}, []alloc.Chunk{
		{Region: 0, Addr: 0, Size: 64, State: alloc.Live, Requested: 60},
		{Region: 0, Addr: 64, Size: 448},
		{Region: 512, Addr: 512, Size: 128, State: alloc.Pending, Requested: 100},
		{Region: 512, Addr: 640, Size: 64, State: alloc.Unmapped},
		{Region: 512, Addr: 704, Size: 64, State: alloc.Aliased},
	}
}

func TestAgreement(t *testing.T) {
	s, chunks := good()
	require.NoError(t, front.CompareStats(s, slices.Values(chunks)))
	require.NoError(t, front.CompareStats(alloc.Stats{}, slices.Values([]alloc.Chunk(nil))))
}

func TestDisagreementIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*alloc.Stats, []alloc.Chunk)
		want  string
	}{
		"gap":            {func(_ *alloc.Stats, c []alloc.Chunk) { c[1].Addr++ }, "does not start where"},
		"order":          {func(_ *alloc.Stats, c []alloc.Chunk) { c[0], c[2] = c[2], c[0] }, "starts below"},
		"region start":   {func(_ *alloc.Stats, c []alloc.Chunk) { c[2].Addr++ }, "not with it"},
		"empty":          {func(_ *alloc.Stats, c []alloc.Chunk) { c[2].Size = 0 }, "is empty"},
		"regions":        {func(s *alloc.Stats, _ []alloc.Chunk) { s.Regions++ }, "regions: counted 3, the walk shows 2"},
		"reserved":       {func(s *alloc.Stats, _ []alloc.Chunk) { s.Reserved++ }, "reserved bytes"},
		"live":           {func(s *alloc.Stats, _ []alloc.Chunk) { s.Live++ }, "live blocks"},
		"requested":      {func(s *alloc.Stats, _ []alloc.Chunk) { s.Requested++ }, "requested bytes"},
		"allocated":      {func(s *alloc.Stats, _ []alloc.Chunk) { s.Allocated++ }, "allocated bytes"},
		"active":         {func(s *alloc.Stats, _ []alloc.Chunk) { s.Active++ }, "active bytes"},
		"pending counts": {func(_ *alloc.Stats, c []alloc.Chunk) { c[2].State = alloc.Free }, "active bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			s, chunks := good()
			c.spoil(&s, chunks)
			require.ErrorContains(t, front.CompareStats(s, slices.Values(chunks)), c.want)
		})
	}
}
