package oracle_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/internal/oracle"
	"github.com/vramyard/vramyard/strategies/buddy/xdl"
)

// tampered passes calls on to a strategy, some of them wrongly.
type tampered struct {
	wrap.Forwarder
	alloc func(alloc.Block) alloc.Block
	free  func(error) error
	walk  func(alloc.Chunk) alloc.Chunk
}

func (s *tampered) Alloc(r alloc.Request) (alloc.Block, error) {
	b, err := s.Forwarder.Alloc(r)
	if err == nil && s.alloc != nil {
		b = s.alloc(b)
	}
	return b, err
}

func (s *tampered) Free(a device.Addr) error {
	err := s.Forwarder.Free(a)
	if s.free != nil {
		err = s.free(err)
	}
	return err
}

func (s *tampered) Walk(yield func(alloc.Chunk) bool) {
	for c := range s.Forwarder.Walk {
		if s.walk != nil {
			c = s.walk(c)
		}
		if !yield(c) {
			return
		}
	}
}

func TestOracleFindsPlantedBugs(t *testing.T) {
	for name, c := range map[string]struct {
		spoil tampered
		want  string
	}{
		"nothing":     {tampered{}, ""},
		"larger":      {tampered{alloc: func(b alloc.Block) alloc.Block { b.Size++; return b }}, "granted"},
		"one address": {tampered{alloc: func(b alloc.Block) alloc.Block { b.Addr = sim.Base; return b }}, ""},
		"any free":    {tampered{free: func(error) error { return nil }}, "illegal free"},
		"no free":     {tampered{free: func(error) error { return alloc.ErrInvalidFree }}, "free of"},
		"tag":         {tampered{walk: func(c alloc.Chunk) alloc.Chunk { c.Tag++; return c }}, "walk shows"},
		"size":        {tampered{walk: func(c alloc.Chunk) alloc.Chunk { c.Size++; return c }}, "walk shows"},
		"lost":        {tampered{walk: func(c alloc.Chunk) alloc.Chunk { c.State = alloc.Slack; return c }}, "live blocks"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := sim.New(sim.Config{})
			require.NoError(t, err)
			a, err := xdl.New(d, xdl.Config{RegionBytes: 65536, BlockBytes: 256})
			require.NoError(t, err)
			s := c.spoil
			s.Forwarder = wrap.Forward(a, nil)
			err = oracle.Drive{
				Seed: 1, Calls: 200,
				Size:    func(rng *rand.Rand) device.Size { return device.Size(1 + rng.IntN(256)) },
				Granted: func(device.Size) device.Size { return 256 },
			}.Run(&s)
			if name == "nothing" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.want)
			}
		})
	}
}
