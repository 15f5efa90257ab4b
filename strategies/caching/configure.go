package caching

import (
	"errors"
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/regions"
)

var _ power.Configurable = (*Allocator)(nil)

// Configure implements [power.Configurable] as torch.cuda.memory._set_allocator_settings; the
// package comment states which settings change. It fails with [alloc.ErrUnsupported] for
// expandable_segments on a device without suitable virtual memory.
func (a *Allocator) Configure(conf string) error {
	if a.front.Closed() {
		return alloc.ErrClosed
	}
	p, set, err := a.plan.change(conf, a.cfg.Rules)
	if err != nil {
		return err
	}
	if set.grew {
		vm, err := a.virtualMemory(&set)
		if err != nil {
			return errors.Join(alloc.ErrUnsupported, err)
		}
		if !a.set.grew {
			a.mem = regions.NewMemory(vm, &a.front.Stats)
		}
	}
	a.apply(p, set)
	return nil
}

// apply makes other settings the present ones.
func (a *Allocator) apply(p planned, set settings) {
	a.before = a.before.Common(a.bars.Of(a.set.barAt))
	a.bars = device.Span{}
	a.plan, a.set, a.changed, a.placer = p, set, true, nil
	a.watchAges()
	for _, sh := range a.shelves {
		if sh != nil {
			sh.leastTail = a.leastTail(sh)
		}
	}
}

// change returns the settings after a change while the allocator runs, and the present ones of
// them. The memory fraction is read once, when PyTorch makes the allocator of a device.
func (p planned) change(conf, rules string) (planned, settings, error) {
	base, err := p.base.parse(conf, rules)
	base.limited, base.fraction, base.fractionSet = p.base.limited, p.base.fraction, p.base.fractionSet
	p.base = base
	var set settings
	if err == nil {
		set, err = p.present(rules)
	}
	if err != nil {
		return p, set, fmt.Errorf("%w: %w", alloc.ErrInvalidSettings, err)
	}
	return p, set, nil
}
