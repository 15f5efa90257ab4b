package whatif

import (
	"context"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/trace"
)

// Peak replays a trace once through a setting, on the device and the card of the options, and
// returns the most bytes that it reserves.
func Peak(ctx context.Context, src trace.Source, s setting.Setup, o Options) (device.Size, error) {
	prepared, err := replay.Prepare(ctx, src)
	if err != nil {
		return 0, err
	}
	t := compare.NewTrial(compare.NewPool(o.Workers, o.Memory), prepared, s, compare.Options{
		Device: replay.SimTarget(o.Device), FreeAt: o.FreeAt, Once: true,
	})
	r, err := t.Measure(ctx, o.Card)
	return r.PeakReserved, err
}
