package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/internal/fileio"
	"github.com/vramyard/vramyard/strategies/slab"
)

func newTraceClasses(catalogue setting.Catalogue) *cobra.Command {
	var config string
	var source formats.Options
	count := 32
	c := &cobra.Command{
		Use:   "classes TRACE...",
		Short: "Learn the size classes of a slab from traces",
		Long: `Print the settings of strategy slab with the size classes that lose the fewest bytes to rounding
on the traces, counting each request once. The choice is optimal for its number of classes.
Requests above max_class_bytes are ignored, because they get no class.`,
		Example: `  vramyard replay --strategy slab --config "$(vramyard trace classes my.trace)" my.trace`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if count < 1 {
				return flagError("count", errNone)
			}
			fields, settings, err := slabSettings(catalogue, config)
			if err != nil {
				return flagError("config", err)
			}
			if err := onceFromStdin(args); err != nil {
				return err
			}
			sizes := map[device.Size]uint64{}
			for _, a := range args {
				t, err := openTrace(a, reading(cmd, a, source), cmd.InOrStdin())
				if err != nil {
					return err
				}
				countClasses(sizes, t, settings)
			}
			learned, err := learn(catalogue, fields, sizes, count)
			if err != nil {
				return err
			}
			return fileio.Write("-", cmd.OutOrStdout(), func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s\n", learned)
				return err
			})
		},
	}
	addSource(c, &source)
	c.Flags().IntVar(&count, "count", count, "maximum number of classes")
	addConfig(c, &config, "other settings of the slab, as a JSON object")
	return c
}

// slabSettings returns the settings of a slab as given and with defaults.
func slabSettings(catalogue setting.Catalogue, config string) (map[string]json.RawMessage, slab.Config, error) {
	setup, err := catalogue.Lookup("slab", json.RawMessage(config))
	if err != nil {
		return nil, slab.Config{}, err
	}
	c, ok := setup.Config.(slab.Config)
	if !ok {
		return nil, c, errors.New("slab: settings without size classes to learn")
	}
	fields := map[string]json.RawMessage{}
	if config != "" {
		if err := json.Unmarshal([]byte(config), &fields); err != nil {
			return nil, c, err // Lookup has read it before
		}
	}
	return fields, c, nil
}

// countClasses adds the requests of a trace to a histogram of the smallest legal class that
// serves each of them.
func countClasses(sizes map[device.Size]uint64, t *trace.Trace, c slab.Config) {
	for i := range t.Events {
		e := &t.Events[i]
		if e.Kind != trace.Alloc && e.Kind != trace.LiveAtStart || e.Size > c.MaxClassBytes {
			continue
		}
		if class, ok := c.ClassOf(e.Size); ok {
			sizes[class.Slot]++
		}
	}
}

// learn returns the settings with the best classes.
func learn(catalogue setting.Catalogue, fields map[string]json.RawMessage, sizes map[device.Size]uint64,
	count int) ([]byte, error) {
	var histogram []slab.SizeCount
	for size, n := range sizes {
		histogram = append(histogram, slab.SizeCount{Size: size, Count: n})
	}
	classes := slab.Learn(histogram, count)
	if len(classes) == 0 {
		return nil, errors.New("no request of the traces is small enough for a class")
	}
	text, err := json.Marshal(classes)
	if err != nil {
		return nil, err
	}
	delete(fields, "classes")
	fields["class_sizes"] = text
	if text, err = json.Marshal(fields); err != nil {
		return nil, err
	}
	if _, err := catalogue.Lookup("slab", text); err != nil {
		return nil, err
	}
	return text, nil
}
