package main

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/strategies/bfc"
)

// Config of a two-ended arena that learns lifetimes.
type Config struct {
	// bytes of the arena; 0 means the default of bfc
	Limit device.Size `json:"limit" doc:"bytes of the arena; default as bfc"`
}

// ForCapacity implements [setting.CapacityConfig].
func (Config) ForCapacity(n device.Size) Config { return Config{n} }

// Preallocates implements [setting.PreallocatingConfig].
func (c Config) Preallocates() bool { return c.arena().Preallocates() }

// arena returns the configuration of bfc:spatial.
func (c Config) arena() bfc.Config {
	return bfc.Config{Variant: bfc.V2026, Spatial: true, Limit: c.Limit}
}

// Promises implements [promise.Promiser]. A request may go to either end.
func (c Config) Promises() promise.Set {
	p := c.arena().Promises()
	serves, most := p.Serves, p.MaxGrant
	p.Serves = func(free alloc.Chunk, r alloc.Request) bool {
		return serves(free, to(alloc.HintLow, r)) || serves(free, to(alloc.HintHigh, r))
	}
	p.MaxGrant = func(r alloc.Request) device.Size {
		return max(most(to(alloc.HintLow, r)), most(to(alloc.HintHigh, r)))
	}
	return p
}

// to returns the request with a hint for an end of the arena.
func to(end alloc.Hint, r alloc.Request) alloc.Request {
	r.Hint = end
	return r
}
