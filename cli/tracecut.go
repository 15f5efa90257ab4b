package cli

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/internal/fileio"
)

type cutFlags struct {
	source              formats.Options
	events, time, steps string
	stream              uint64
	to                  string
}

func newTraceCut() *cobra.Command {
	var f cutFlags
	c := &cobra.Command{
		Use:   "cut TRACE OUT --events A:B | --time A:B | --steps A:B [--stream S]",
		Short: "Cut a part out of a trace",
		Long: `Cut out the events from A up to but not including B, counted from 0; either may be omitted. Blocks
that are live before A are live at the start of the part, pending frees are completed in it, and
private pools exist. --time takes durations since the start of the trace ("1.5s:2s"), --steps the
steps that "vramyard trace info" finds in the marks. --stream takes the allocations of one stream,
from all events or from a range.`,
		Example: "  vramyard trace cut run.csv.gz step3.trace --steps 3:4\n  vramyard trace cut run.csv.gz late.csv.gz " +
			"--time 2s:",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0], args[1]) },
	}
	addSource(c, &f.source)
	c.Flags().StringVar(&f.events, "events", "", "range of events")
	c.Flags().StringVar(&f.time, "time", "", "range of time")
	c.Flags().StringVar(&f.steps, "steps", "", "range of steps")
	c.Flags().Uint64Var(&f.stream, "stream", 0, "only the allocations on this stream (default: all)")
	c.Flags().StringVar(&f.to, "to", "", toUsage)
	c.MarkFlagsOneRequired("events", "time", "steps", "stream")
	c.MarkFlagsMutuallyExclusive("events", "time", "steps")
	return c
}

func (f *cutFlags) run(cmd *cobra.Command, in, out string) error {
	if err := argument(out).check(in); err != nil {
		return err
	}
	form, err := traceForm(f.to, out)
	if err != nil {
		return err
	}
	t, err := openSource(in, reading(cmd, in, f.source), cmd.InOrStdin())
	if err != nil {
		return err
	}
	span, err := f.span(t, cmd.Flags().Changed)
	if err != nil {
		return err
	}
	if cmd.Flags().Changed("stream") {
		s := device.Stream(f.stream)
		span.Stream = &s
	}
	part, err := trace.Cut(walking(cmd, "cutting", t), span, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	return fileio.Write(out, document(cmd.OutOrStdout()), func(w io.Writer) error {
		return form.Write(w, walking(cmd, "writing", part))
	})
}

// span returns the span that the given flags select.
func (f *cutFlags) span(t trace.Source, changed func(flag string) bool) (trace.Span, error) {
	events := t.Head().Events
	count := func(s string) (int64, error) {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < 0 {
			return 0, fmt.Errorf("%q: want a number from 0", s)
		}
		return n, nil
	}
	switch {
	case changed("events"):
		a, b, err := parseRange(f.events, int64(events), count)
		return trace.Span{First: int(a), End: int(b)}, flagError("events", err)
	case changed("time"):
		a, b, err := parseRange(f.time, math.MaxInt64, func(s string) (int64, error) {
			d, err := time.ParseDuration(s)
			if err != nil || d < 0 {
				return 0, fmt.Errorf(`%q: want a duration such as "1.5s"`, s)
			}
			return int64(d), nil
		})
		if err != nil {
			return trace.Span{}, flagError("time", err)
		}
		span, timed, err := trace.InTime(t, a, b)
		if err == nil && !timed {
			err = flagError("time", errors.New("the trace has no times"))
		}
		return span, err
	case changed("steps"):
		steps, err := trace.Steps(t)
		if err != nil {
			return trace.Span{}, err
		}
		a, b, err := parseRange(f.steps, int64(len(steps)), count)
		switch {
		case err != nil:
		case len(steps) == 0:
			err = errors.New("the trace has no marks of steps")
		case b > int64(len(steps)) || a == b:
			err = fmt.Errorf("%s: want some of the steps 0:%d", f.steps, len(steps))
		}
		if err != nil {
			return trace.Span{}, flagError("steps", err)
		}
		return trace.Span{First: steps[a].First, End: steps[b-1].End}, nil
	}
	return trace.Span{End: events}, nil
}

// parseRange reads A:B. Either side may be omitted: the defaults are 0 and most.
func parseRange(s string, most int64, parse func(string) (int64, error)) (a, b int64, err error) {
	from, to, ok := strings.Cut(s, ":")
	if !ok {
		return 0, 0, fmt.Errorf("%q: want a range A:B", s)
	}
	b = most
	if from != "" {
		if a, err = parse(from); err != nil {
			return 0, 0, err
		}
	}
	if to != "" {
		if b, err = parse(to); err != nil {
			return 0, 0, err
		}
	}
	if a > b {
		return 0, 0, fmt.Errorf("%q: ends before it begins", s)
	}
	return a, b, nil
}
