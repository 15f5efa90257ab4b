package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/report"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/outfile"
	"github.com/vramyard/vramyard/strategies"
)

// replayFlags are the flags of the command replay.
type replayFlags struct {
	strategy, config, sim, dialect string
	placements, final, jsonFile    string
	report                         string
}

func newReplay() *cobra.Command {
	var f replayFlags
	c := &cobra.Command{
		Use:   "replay --strategy NAME [flags] TRACE",
		Short: "Replay one trace through one strategy and show every figure",
		Long: `Replay one trace through one strategy on a simulated GPU.

A TRACE is a file (text or CSV, plain, .gz or .zst), "-" for standard input, or the name
of a trace inside the program.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	c.Flags().StringVar(&f.strategy, "strategy", "", "strategy, by name or name:preset")
	c.Flags().StringVar(&f.config, "config", "", "JSON object; its fields replace those of the preset")
	c.Flags().StringVar(&f.sim, "sim", "", `simulated device as a JSON object; the default is {"capacity":0,"policy":"first-fit",
"align":2097152,"round":256,"charge":256,"gap":0,"fail_above":0}`)
	c.Flags().StringVar(&f.dialect, "dialect", "", dialectUsage)
	c.Flags().StringVar(&f.placements, "placements", "", `write where each allocation lies to this file, "-" for standard output`)
	c.Flags().StringVar(&f.final, "final", "", `write the state at the end to this file, "-" for standard output`)
	c.Flags().StringVar(&f.jsonFile, "json", "", `write all figures as JSON to this file, "-" for standard output`)
	c.Flags().StringVar(&f.report, "oom-report", "", `write the strategy's own report about the first OOM to this file, "-" for standard output`)
	if err := c.MarkFlagRequired("strategy"); err != nil {
		panic(err) // the flag is defined above
	}
	return c
}

// run executes the command. The trace is replayed twice, because measuring the latency of
// single calls would distort the time of the whole.
func (f *replayFlags) run(cmd *cobra.Command, path string) error {
	err := checkOutputs([]string{path}, output{"placements", f.placements, true}, output{"final", f.final, true},
		output{"oom-report", f.report, true}, output{"json", f.jsonFile, false})
	if err != nil {
		return err
	}
	setup, err := strategies.All().Lookup(f.strategy, json.RawMessage(f.config))
	if err != nil {
		return err
	}
	cfg, err := simConfig(f.sim)
	if err != nil {
		return flagError("sim", err)
	}
	t, err := openTrace(path, f.dialect, cmd.InOrStdin())
	if err != nil {
		return err
	}
	res, final, err := f.replay(cmd.OutOrStdout(), t, setup, cfg)
	if err != nil {
		return err
	}
	timed, err := runOn(t, setup, cfg, replay.Options{Latency: true})
	if err != nil {
		return err
	}
	res.Latency = timed.Latency
	return f.write(cmd.OutOrStdout(), res, final)
}

// replay runs the trace and writes the placements. It returns the figures and the text of
// the final state.
func (f *replayFlags) replay(stdout io.Writer, t *trace.Trace, setup alloc.Setup, cfg sim.Config) (res *replay.Result, final []byte, err error) {
	var state bytes.Buffer
	o := replay.Options{Figures: true, Report: f.report != ""}
	if f.final != "" {
		o.Final = &state
	}
	if f.placements == "" {
		res, err = runOn(t, setup, cfg, o)
		return res, state.Bytes(), err
	}
	err = outfile.Write(f.placements, stdout, func(w io.Writer) error {
		o.Placements = w
		var err error
		res, err = runOn(t, setup, cfg, o)
		return err
	})
	return res, state.Bytes(), err
}

// write writes the final state and the figures.
func (f *replayFlags) write(stdout io.Writer, res *replay.Result, final []byte) error {
	if f.final != "" {
		err := outfile.Write(f.final, stdout, func(w io.Writer) error {
			_, err := w.Write(final)
			return err
		})
		if err != nil {
			return err
		}
	}
	if f.report != "" {
		if err := f.writeReport(stdout, res); err != nil {
			return err
		}
	}
	if f.jsonFile != "" {
		if err := writeJSON(f.jsonFile, stdout, res); err != nil {
			return err
		}
	}
	if f.placements == "-" || f.final == "-" || f.jsonFile == "-" || f.report == "-" {
		return nil // standard output holds what was asked for and nothing else
	}
	return outfile.Write("-", stdout, func(w io.Writer) error { return report.ReplayTable(w, res) })
}

// writeReport writes what the strategy said of its first OOM. Where there is nothing to
// say, it says why.
func (f *replayFlags) writeReport(stdout io.Writer, res *replay.Result) error {
	text := res.OOMReport
	switch {
	case res.OOMs == 0:
		text = []byte("no request ran out of memory\n")
	case len(text) == 0:
		return flagError("oom-report", fmt.Errorf("%s writes no report", res.Strategy))
	}
	return outfile.Write(f.report, stdout, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// runOn replays over a fresh simulated device.
func runOn(t *trace.Trace, setup alloc.Setup, cfg sim.Config, o replay.Options) (*replay.Result, error) {
	dev, err := sim.New(cfg)
	if err != nil {
		return nil, err
	}
	return replay.Run(t, setup, dev, o)
}

// simConfig reads the flag --sim; nothing means the default device.
func simConfig(raw string) (sim.Config, error) {
	if raw == "" {
		return sim.Config{}, nil
	}
	return sim.ParseConfig([]byte(raw))
}
