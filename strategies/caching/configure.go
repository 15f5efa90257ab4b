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
	set, err := a.set.change(conf, a.cfg.Rules)
	if err != nil {
		return err
	}
	if set.expandable {
		vm, err := a.virtualMemory(&set)
		if err != nil {
			return errors.Join(alloc.ErrUnsupported, err)
		}
		if !a.set.grew {
			a.mem = regions.NewMemory(vm, &a.front.Stats)
		}
	}
	a.before = a.before.Common(a.bars.Of(a.set.barAt))
	a.bars = device.Span{}
	a.set, a.changed, a.placer = set, true, nil
	a.watchAges()
	for _, sh := range a.shelves {
		if sh != nil {
			sh.leastTail = set.leastTail(sh.kind)
		}
	}
	return nil
}

// change returns the settings after a change while the allocator runs. The memory fraction is read
// once, when PyTorch makes the allocator of a device.
func (s settings) change(conf, rules string) (settings, error) {
	set, err := s.parse(conf, rules)
	if err != nil {
		return s, fmt.Errorf("%w: %w", alloc.ErrInvalidSettings, err)
	}
	set.limited, set.fraction, set.fractionSet = s.limited, s.fraction, s.fractionSet
	return set, nil
}
