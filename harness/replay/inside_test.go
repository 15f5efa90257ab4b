package replay

import (
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
)

// RunClocked is Run that first passes on whether the clock of the loop runs.
func (p *Prepared) RunClocked(setup setting.Setup, dev device.Device, o Options,
	clock func(runs func() bool)) (*Result, error) {
	r, err := p.newRunner(setup, dev, o)
	if err != nil {
		return nil, err
	}
	clock(func() bool { return r.clock.stops == 0 })
	err = r.run()
	return &r.res, err
}
