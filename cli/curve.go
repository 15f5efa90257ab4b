package cli

import (
	"io"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/flat"
	"github.com/vramyard/vramyard/harness/trace/parquet"
	"github.com/vramyard/vramyard/internal/budget"
)

// pointBytes is the memory that --curve takes for each event: a point, and its row of the table.
const pointBytes = 64

// takeCurve replays the trace for --curve.
func (f *replayFlags) takeCurve(p *replay.Prepared, t trace.Source, setup setting.Setup, on replay.Target,
	o replay.Options) error {
	out := f.files.of("curve")
	if out.path == "" {
		return nil
	}
	if err := budget.New(f.source.Memory).Check(pointBytes * int64(t.Head().Events)); err != nil {
		return flagError("curve", err)
	}
	o.EachEvent = true
	res, err := runOn(p, setup, on, o)
	if err != nil {
		return err
	}
	table := flat.Of(res.Series.Points)
	switch endingOf(out.path) {
	case ".npy":
		out.fill = table.WriteNPY
	case ".parquet":
		out.fill = func(w io.Writer) error { return parquet.WriteTable(w, table) }
	default:
		out.fill = table.WriteCSV
	}
	return nil
}
