package compare

import (
	"context"
	"math"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
)

// Time returns the nanoseconds per operation of each setup on each trace: the minimum over some
// rounds. A round replays everything once, one replay at a time, so that other load affects all
// replays alike, and the minimum least. Each replay is on an ample device with the other settings
// of on. It ends with the error of ctx soon after that ends.
func Time[S trace.Source](ctx context.Context, traces []S, setups []setting.Setup, on sim.Config,
	rounds int) ([][]float64, error) {
	ns := make([][]float64, len(setups))
	for i := range ns {
		ns[i] = make([]float64, len(traces))
		for j := range ns[i] {
			ns[i][j] = math.Inf(1)
		}
	}
	prepared := make([]*replay.Prepared, len(traces))
	for j, t := range traces {
		p, err := replay.Prepare(ctx, t)
		if err != nil {
			return nil, err
		}
		prepared[j] = p
	}
	for range rounds {
		for j, t := range prepared {
			for i, s := range setups {
				c := &Trial{trace: t, setup: s, o: Options{Device: replay.SimTarget(on)}}
				res, _, err := c.replay(ctx, Ample(t.LowerBound()), replay.Options{})
				if err != nil {
					return nil, err
				}
				if res != nil {
					ns[i][j] = min(ns[i][j], res.NsPerOp)
				}
			}
		}
	}
	return ns, nil
}
