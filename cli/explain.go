package cli

import (
	"io"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/postmortem"
)

// explain replays once more up to the first request that finds no memory, if --explain is
// given.
func (f *replayFlags) explain(p *replay.Prepared, stacks *postmortem.Stacks, setup setting.Setup, cfg sim.Config,
	at replay.FreeAt, step func(event int) error) error {
	if !f.files.wanted("explain") {
		return nil
	}
	o := postmortem.Options{
		Event: postmortem.FirstOOM, FreeAt: at, Step: step, Device: func() (device.Device, error) { return sim.New(cfg) },
	}
	if stacks != nil {
		o.Stacks = stacks.Places
	}
	v, err := postmortem.Replay(p, setup, o)
	if err != nil {
		return err
	}
	v.Provenance = provenance.Read()
	f.verdict = v
	return nil
}

// writeExplained writes why the first request found no memory: as JSON if the file's name ends in
// .json.
func (f *replayFlags) writeExplained(w io.Writer) error {
	if endingOf(f.files.of("explain").path) == ".json" {
		return encodeJSON(w, f.verdict)
	}
	return report.PostmortemVerdict(w, f.verdict)
}
