package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/show/export"
	"github.com/vramyard/vramyard/harness/trace"
)

// exportFlags are the flags that show a replay to the tools of others.
type exportFlags struct {
	snapshot, perfetto string

	recording *export.Recording // nil if nothing is to be exported
}

// add adds the flags.
func (f *exportFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.snapshot, "snapshot", "", `write the replay as a memory snapshot for pytorch.org/memory_viz to this file, .pickle or .pickle.gz, "-" for standard output`)
	c.Flags().StringVar(&f.perfetto, "perfetto", "", `write the replay as a picture for ui.perfetto.dev to this file, .json or .json.gz, "-" for standard output`)
}

// The endings of names that say what is in the file.
var (
	snapshotEndings = []string{".pickle", ".pkl", ".pickle.gz", ".pickle.zst"}
	perfettoEndings = []string{".json", ".json.gz"}
)

// check refuses names whose endings promise something else. A name without an ending promises nothing.
func (f *exportFlags) check() error {
	for _, o := range []struct {
		flag, path string
		endings    []string
	}{{"snapshot", f.snapshot, snapshotEndings}, {"perfetto", f.perfetto, perfettoEndings}} {
		name := strings.ToLower(o.path)
		fits := slices.ContainsFunc(o.endings, func(e string) bool { return strings.HasSuffix(name, e) })
		if filepath.Ext(name) != "" && !fits {
			return flagError(o.flag, fmt.Errorf("%s: want a name that ends in one of %s", o.path, strings.Join(o.endings, ", ")))
		}
	}
	return nil
}

// outputs returns what is written.
func (f *exportFlags) outputs() []output {
	return []output{{"snapshot", f.snapshot, false}, {"perfetto", f.perfetto, false}}
}

// record replays once more and notes everything, if it is to be exported.
func (f *exportFlags) record(t trace.Source, setup alloc.Setup, cfg sim.Config, o export.Options) error {
	if f.snapshot == "" && f.perfetto == "" {
		return nil
	}
	dev, err := sim.New(cfg)
	if err != nil {
		return err
	}
	if f.recording, err = export.Record(t, setup, dev, o); err != nil || f.snapshot == "" {
		return err
	}
	if _, err = f.recording.Snapshot(); err != nil {
		err = flagError("snapshot", err)
	}
	return err
}

// files returns the files that hold the recording.
func (f *exportFlags) files() []resultFile {
	return []resultFile{
		{path: f.snapshot, fill: func(w io.Writer) error { return f.recording.WriteSnapshot(w) }},
		{path: f.perfetto, fill: func(w io.Writer) error { return f.recording.WritePerfetto(w) }},
	}
}
