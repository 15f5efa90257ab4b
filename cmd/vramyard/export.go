package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/export"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/outfile"
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

// toStdout reports whether standard output is taken.
func (f *exportFlags) toStdout() bool { return f.snapshot == "-" || f.perfetto == "-" }

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

// write writes the files.
func (f *exportFlags) write(stdout io.Writer) error {
	if f.snapshot != "" {
		if err := outfile.Write(f.snapshot, document(stdout), f.recording.WriteSnapshot); err != nil {
			return err
		}
	}
	if f.perfetto != "" {
		return outfile.Write(f.perfetto, document(stdout), f.recording.WritePerfetto)
	}
	return nil
}
