package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/show/export"
	"github.com/vramyard/vramyard/harness/trace"
)

func (f *replayFlags) addExports(c *cobra.Command) {
	f.files.add(c, "snapshot",
		`write the replay as a memory snapshot for pytorch.org/memory_viz to this file, .pickle or .pickle.gz, "-" for standard output`)
	f.files.add(c, "perfetto",
		`write the replay as a timeline for ui.perfetto.dev to this file, .json or .json.gz, "-" for standard output`)
}

// exported are the endings of the names of exports. A name without an ending is accepted too.
var exported = []struct {
	flag    string
	endings []string
}{
	{"snapshot", []string{".pickle", ".pkl", ".pickle.gz", ".pickle.zst"}},
	{"perfetto", []string{".json", ".json.gz"}},
}

// checkExports refuses names whose endings promise another form.
func (f *replayFlags) checkExports() error {
	for _, e := range exported {
		path := f.files.of(e.flag).path
		name := strings.ToLower(path)
		fits := slices.ContainsFunc(e.endings, func(ending string) bool { return strings.HasSuffix(name, ending) })
		if filepath.Ext(name) != "" && !fits {
			return flagError(e.flag, fmt.Errorf("%s: want a name that ends in one of %s", path, strings.Join(e.endings, ", ")))
		}
	}
	return nil
}

// record replays once more and records everything for the requested exports.
func (f *replayFlags) record(t trace.Source, setup setting.Setup, cfg sim.Config, o export.Options) error {
	if !f.files.wanted("snapshot") && !f.files.wanted("perfetto") {
		return nil
	}
	dev, err := sim.New(cfg)
	if err != nil {
		return err
	}
	recording, err := export.Replay(t, setup, dev, o)
	if err != nil {
		return err
	}
	f.files.of("snapshot").fill = recording.WriteSnapshot
	f.files.of("perfetto").fill = recording.WritePerfetto
	if f.files.wanted("snapshot") {
		_, err = recording.Snapshot()
	}
	return flagError("snapshot", err)
}
