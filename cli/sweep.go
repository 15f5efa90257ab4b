package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat/grid"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/study/sweep"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/corpus"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/internal/budget"
	"github.com/vramyard/vramyard/internal/units"
)

func newSweep(catalogue setting.Catalogue) *cobra.Command {
	c := &cobra.Command{
		Use:   "sweep",
		Short: "Run traces × strategies × settings × devices on any number of machines",
		Long: `Run a study on any number of machines that share a folder or an S3 bucket. plan writes one row for each cell: a
trace, a strategy with its settings, a device and a search; or an op log, a strategy, a heuristic and a budget. run
computes one shard of the cells and skips those in the store. merge writes the results as one table. Every program that
starts processes can start the workers: Slurm, Kubernetes, GNU parallel, Snakemake, Ray (examples/sweep). docs/sweep.md
is the manual.`,
		Args: knownCommand,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("missing command: want plan, run, merge or status")
		},
	}
	c.AddCommand(newSweepPlan(catalogue), newSweepRun(catalogue), newSweepMerge(), newSweepStatus())
	return c
}

// addTable adds the flag -o for a table in Parquet.
func (o *outputs) addTable(c *cobra.Command, usage string) *output {
	out := &output{flag: "output"}
	c.Flags().StringVarP(&out.path, out.flag, "o", "", usage)
	mustHave(c, out.flag)
	o.all = append(o.all, out)
	return out
}

func newSweepPlan(catalogue setting.Catalogue) *cobra.Command {
	var files outputs
	var times string
	var memory device.Size
	c := &cobra.Command{
		Use:   "plan STUDY.yaml -o PLAN.parquet",
		Short: "Write the cells of a study",
		Long: `Write a plan: a table with one row for each cell of a study. The study names traces, strategies, devices and
searches, or op logs, strategies, heuristics and budgets; docs/sweep.md has its form. A relative path is relative to the
study, and in the plan to the plan. Every trace and log is read once.

The predicted cost of a cell, by which the shards are balanced, is its number of replayed events. With --times it is
its time, by the times that "vramyard sweep merge --times" wrote for earlier cells of the same strategies.`,
		Example: "  vramyard sweep plan study.yaml -o plan.parquet",
		Args:    cobra.ExactArgs(1),
	}
	out := files.addTable(c, `write the plan to this file, such as "plan.parquet"`)
	c.Flags().StringVar(&times, "times", "", `times of earlier cells, such as "times.parquet"`)
	addMemory(c, &memory)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if err := files.check(args[0], times); err != nil {
			return err
		}
		read := func(name string, in io.Reader, _ *budget.Budget) (*sweep.Study, error) {
			s, err := sweep.ReadStudy(in, catalogue)
			if err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
			return s, err
		}
		study, err := readFile(cmd, args[0], memory, read)
		if err != nil {
			return err
		}
		place := folder(out.path)
		from := relocation{folder(args[0]), place, inside}
		if study.Traces, err = from.expand(study.Traces); err != nil {
			return fmt.Errorf("%s: traces: %w", args[0], err)
		}
		if study.Learn != "" {
			study.Learn = from.relocated(study.Learn)
		}
		from.named = func(string) bool { return false }
		if study.Logs, err = from.expand(study.Logs); err != nil {
			return fmt.Errorf("%s: logs: %w", args[0], err)
		}
		var speeds *sweep.Speeds
		if times != "" {
			rows, err := readTable(times, memory, sweep.ReadTimes)
			if err != nil {
				return flagError("times", err)
			}
			speeds = sweep.SpeedsOf(rows)
		}
		subjects := units.Several(max(len(study.Traces), len(study.Logs)), "trace")
		if len(study.Logs) > 0 {
			subjects = units.Several(len(study.Logs), "log")
		}
		p := begin(cmd, stage{unit: "files", total: int64(len(study.Traces) + len(study.Logs))})
		plan, err := sweep.Make(cmd.Context(), study, stepping(sweepFiles(cmd, place, memory), p.step), speeds)
		if errors.Is(err, compare.ErrNoPlanner) {
			err = fmt.Errorf("%s: learn: %w", args[0], noPlanner(catalogue))
		}
		if err != nil {
			return err
		}
		out.fill = plan.Write
		return files.write(cmd.OutOrStdout(), func(w io.Writer) error {
			shared := ""
			if n := plan.Distinct(); n < len(plan.Rows) {
				shared = fmt.Sprintf(", %d of them distinct: others have the same events and configuration", n)
			}
			_, err := fmt.Fprintf(w, "%s of %s%s.\n", units.Several(len(plan.Rows), "cell"), subjects, shared)
			return err
		})
	}
	return c
}

// folder returns the folder of a file.
func folder(path string) string {
	if path == "-" {
		return "."
	}
	return filepath.Dir(path)
}

// inside reports whether a trace is named and not a path.
func inside(spec string) bool {
	_, generated, _ := workload.Named(spec)
	return generated || slices.Contains(corpus.Names(), spec)
}

// relocation makes paths that are relative to one folder relative to another.
type relocation struct {
	from, to string
	named    func(spec string) bool // reports whether a spec is a name and not a path
}

func (r relocation) relocated(path string) string {
	if r.named(path) || filepath.IsAbs(path) {
		return path
	}
	path = filepath.Join(r.from, path)
	if absolute, err := filepath.Abs(r.to); err == nil {
		if of, err := filepath.Abs(path); err == nil {
			if relative, err := filepath.Rel(absolute, of); err == nil {
				return filepath.ToSlash(relative)
			}
		}
	}
	return path
}

// literal escapes the characters of a folder that have a meaning in a pattern.
var literal = strings.NewReplacer(`*`, `[*]`, `?`, `[?]`, `[`, `[[]`)

// expand returns the files and names of a study, patterns expanded and without repetitions.
func (r relocation) expand(specs []string) (all []string, err error) {
	add := func(spec string) {
		if spec = r.relocated(spec); !slices.Contains(all, spec) {
			all = append(all, spec)
		}
	}
	for _, spec := range specs {
		if r.named(spec) || !strings.ContainsAny(spec, "*?[") {
			add(spec)
			continue
		}
		pattern := spec
		if !filepath.IsAbs(spec) {
			pattern = filepath.Join(literal.Replace(r.from), spec)
		}
		files, err := filepath.Glob(pattern)
		if err == nil && len(files) == 0 {
			err = errors.New("no file matches")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", spec, err)
		}
		for _, f := range files {
			if !filepath.IsAbs(spec) {
				if f, err = filepath.Rel(r.from, f); err != nil {
					return nil, err
				}
			}
			add(f)
		}
	}
	return all, nil
}

// sweepFiles opens the traces and logs of a plan, whose relative paths are relative to a folder.
func sweepFiles(cmd *cobra.Command, folder string, memory device.Size) sweep.Open {
	path := func(spec string) string {
		path := filepath.FromSlash(spec)
		if !filepath.IsAbs(path) {
			path = filepath.Join(folder, path)
		}
		return path
	}
	return sweep.Open{
		Trace: func(spec string) (sweep.Opened, error) {
			o := formats.Options{Memory: memory, Warn: warnings(cmd)}
			var src trace.Source
			var err error
			if inside(spec) { // whatever files the folder of the process has
				src, err = openInside(spec, o)
			} else {
				src, err = openSource(path(spec), o, nil)
			}
			if err != nil {
				return sweep.Opened{}, err
			}
			return sweep.Opened{Source: src, Card: recordedCard(src.Head().Header)}, nil
		},
		Log: func(spec string) (*grid.Log, error) { return openLog(path(spec), memory) },
	}
}

// stepping returns open, which calls step for each file.
func stepping(open sweep.Open, step func()) sweep.Open {
	return sweep.Open{
		Trace: func(spec string) (sweep.Opened, error) {
			defer step()
			return open.Trace(spec)
		},
		Log: func(spec string) (*grid.Log, error) {
			defer step()
			return open.Log(spec)
		},
	}
}

// readTable reads a table in Parquet.
func readTable[T any](path string, most device.Size,
	read func(io.ReaderAt, int64, string, *budget.Budget) (T, error)) (t T, err error) {
	f, err := openFile(path)
	if err != nil {
		return t, err
	}
	defer f.Close() // only read from
	info, err := f.Stat()
	if err != nil {
		return t, err
	}
	return read(f, info.Size(), path, budget.New(most))
}

// planFlags are the flags of the commands over a plan.
type planFlags struct {
	store  storeFlag
	memory device.Size
}

func (f *planFlags) add(c *cobra.Command) {
	addStore(c, &f.store, "cells of the sweep")
	mustHave(c, "store")
	addMemory(c, &f.memory)
}

func newSweepRun(catalogue setting.Catalogue) *cobra.Command {
	var f planFlags
	var shard string
	var workers int
	c := &cobra.Command{
		Use:   "run PLAN.parquet --store STORE",
		Short: "Compute the cells of one shard that the store does not have",
		Long: `Compute the cells of one shard. Cells that the store has are skipped, so the same command continues after an
interruption. A worker that is killed loses the cells in progress; of long searches, one replay each.

--shard auto takes the shard from the variables of a task: SLURM_ARRAY_TASK_ID with _MIN, _MAX, _STEP and _COUNT,
JOB_COMPLETION_INDEX (Kubernetes), AWS_BATCH_JOB_ARRAY_INDEX with _SIZE, or TEST_SHARD_INDEX with TEST_TOTAL_SHARDS
(Bazel). auto/64 sets the number of shards; tasks are then numbered from 0.

A cell that fails on every repetition has the failure as its result. The exit status is 3 if a cell of the shard has
one, 1 if a cell has other exact figures in the store, and 75 if SIGTERM came before the last cell began: the cells in
progress are completed, and the engine may start the task again.`,
		Example: "  vramyard sweep run plan.parquet --store cells\n" +
			"  vramyard sweep run plan.parquet --store s3://bucket/cells --shard auto/64",
		Args: cobra.ExactArgs(1),
	}
	f.add(c)
	c.Flags().StringVar(&shard, "shard", "1/1", `part of the cells: K/N, such as "3/64", "auto" or "auto/64"`)
	c.Flags().IntVar(&workers, "workers", 0, "cells at once (default: one for each core)")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := parseShard(shard)
		if err != nil {
			return flagError("shard", err)
		}
		if workers < 0 {
			return flagError("workers", errWorkers)
		}
		until, done := untilInterrupt(cmd) // also while the plan and the store are opened
		defer done()
		plan, err := readTable(args[0], f.memory, sweep.ReadPlan)
		if err != nil {
			return err
		}
		store, err := f.store.open(cmd)
		if err != nil {
			return err
		}
		p := begin(cmd, stage{unit: "cells"})
		sum, err := plan.Run(cmd.Context(), s, sweep.Worker{
			Catalogue: catalogue, Open: sweepFiles(cmd, folder(args[0]), f.memory), Store: store, Workers: workers,
			Memory: heapLeft(), Stop: until.Done(), Began: func(n int) { p.reached(0, int64(n)) },
			Done: p.step,
		})
		if err != nil {
			return err
		}
		if err := new(outputs).write(cmd.OutOrStdout(), func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "shard %v: %s: %d in the store before, %d computed, %d failed, %d left.\n", s,
				units.Several(sum.Cells, "cell"), sum.Present, sum.Computed, sum.Failed, sum.Left())
			return err
		}); err != nil {
			return err
		}
		return outcomeOf(cmd, &sum)
	}
	return c
}

// outcomeOf returns an error with the exit status of a shard, nil for success.
func outcomeOf(cmd *cobra.Command, s *sweep.Summary) error {
	left := fmt.Errorf("stopped: %s left; the same command continues", units.Several(s.Left(), "cell"))
	switch {
	case len(s.Disagreed) > 0:
		return failure{fmt.Errorf("%s: %w", units.Several(len(s.Disagreed), "disagreement"), s.Disagreed[0])}
	case s.Left() > 0 && statusOf(cmd.Context()) == 128+int(syscall.SIGTERM):
		return withStatus{left, exitContinue}
	case s.Left() > 0:
		return withStatus{left, statusOf(cmd.Context())}
	case s.Failed > 0:
		why := fmt.Errorf("%s failed: \"vramyard sweep status\" shows why", units.Several(s.Failed, "cell"))
		return withStatus{why, exitSome}
	}
	return nil
}

func newSweepMerge() *cobra.Command {
	var f planFlags
	var files outputs
	var missing bool
	c := &cobra.Command{
		Use:   "merge PLAN.parquet --store STORE -o RESULTS.parquet",
		Short: "Write the results of a plan as one table",
		Long: `Write the exact figures of all cells of a plan as a table in Parquet, in the order of the plan. The file is the
same byte for byte, however the cells were computed. docs/sweep.md describes the columns. --times writes the measured
figures, which differ from run to run, to a file of their own.

The exit status is 1 if cells are missing, unless --allow-missing prints them and merges the others, and if two workers
disagree on the exact figures of a cell.`,
		Example: "  vramyard sweep merge plan.parquet --store cells -o results.parquet",
		Args:    cobra.ExactArgs(1),
	}
	out := files.addTable(c, `write the results to this file, such as "results.parquet"`)
	times := files.add(c, "times", `also write the measured figures as Parquet to this file`)
	c.Flags().BoolVar(&missing, "allow-missing", false, "print the missing cells and merge the others")
	f.add(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if err := files.check(args[0]); err != nil {
			return err
		}
		plan, m, err := f.merged(cmd, args[0])
		if err != nil {
			return err
		}
		if len(m.Disputed) > 0 {
			return failure{disputed(m)}
		}
		if len(m.Missing) > 0 && !missing {
			return failure{fmt.Errorf("%d of %s are missing, the first is %v: \"vramyard sweep run\" computes them, "+
				"--allow-missing merges the others", len(m.Missing), units.Several(len(plan.Rows), "cell"),
				&plan.Rows[m.Missing[0]])}
		}
		out.fill = m.Results.Write
		times.fill = func(w io.Writer) error { return sweep.WriteTimes(w, m.Times) }
		return files.write(cmd.OutOrStdout(), func(w io.Writer) error {
			for _, i := range m.Missing {
				if _, err := fmt.Fprintf(w, "missing: %v\n", &plan.Rows[i]); err != nil {
					return err
				}
			}
			_, err := fmt.Fprintf(w, "%s, %d failed, %d missing.\n", units.Several(m.Len(), "result"), len(m.Failures),
				len(m.Missing))
			return err
		})
	}
	return c
}

func disputed(m *sweep.Merged) error {
	return fmt.Errorf("workers disagree on the exact figures of %s, the first is %s: the store has both, the second one "+
		"under conflicts/; remove both files to compute the cell again", units.Several(len(m.Disputed), "cell"),
		m.Disputed[0])
}

// merged reads the results of a plan.
func (f *planFlags) merged(cmd *cobra.Command, path string) (*sweep.Plan, *sweep.Merged, error) {
	plan, err := readTable(path, f.memory, sweep.ReadPlan)
	if err != nil {
		return nil, nil, err
	}
	store, err := f.store.existing(cmd)
	if err != nil {
		return nil, nil, err
	}
	m, err := plan.Merge(cmd.Context(), store)
	return plan, m, err
}

func newSweepStatus() *cobra.Command {
	var f planFlags
	c := &cobra.Command{
		Use:   "status PLAN.parquet --store STORE",
		Short: "Show how many cells of a plan are done, and which failed",
		Long: `Show how many cells of a plan the store has, their share of the predicted time, and the cells that failed with
the error of each. The exit status is 1 if two workers disagree on the exact figures of a cell.`,
		Example: "  vramyard sweep status plan.parquet --store cells",
		Args:    cobra.ExactArgs(1),
	}
	f.add(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		plan, m, err := f.merged(cmd, args[0])
		if err != nil {
			return err
		}
		if err := new(outputs).write(cmd.OutOrStdout(), func(w io.Writer) error { return plan.Status(w, m) }); err != nil {
			return err
		}
		if len(m.Disputed) > 0 {
			return failure{disputed(m)}
		}
		return nil
	}
	return c
}
