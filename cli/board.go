package cli

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/cell"
	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/remat/grid"
	"github.com/vramyard/vramyard/harness/show/site"
	"github.com/vramyard/vramyard/harness/study/board"
	"github.com/vramyard/vramyard/harness/study/sweep"
	"github.com/vramyard/vramyard/internal/fileio"
	"github.com/vramyard/vramyard/internal/units"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/check"
)

func newBoard(catalogue setting.Catalogue) *cobra.Command {
	c := &cobra.Command{
		Use:   "board",
		Short: "Publish results of sweeps as a static site, and audit them",
		Long: `Publish merged results of sweeps as a static site with a track for each constraint, and repeat a sample of their
cells. docs/board.md is the manual and says how to enter a strategy.`,
		Args: knownCommand,
		RunE: func(*cobra.Command, []string) error { return errors.New("missing command: want build or audit") },
	}
	c.AddCommand(newBoardBuild(catalogue), newBoardAudit(catalogue))
	return c
}

// boardFlags are the flags of board build.
type boardFlags struct {
	catalogue      setting.Catalogue
	folder, device string
	tests          int
	seed           uint64
	memory         device.Size
}

func newBoardBuild(catalogue setting.Catalogue) *cobra.Command {
	f := boardFlags{catalogue: catalogue}
	c := &cobra.Command{
		Use:   "build RESULTS.parquet... -o FOLDER",
		Short: "Write a static site of merged results",
		Long: `Write a site that opens offline: an index, a page for each track, and a page for each trace and op log on which every
figure has the hashes of its cells and the commands that repeat them. Tracks are constraints: plain device memory,
virtual memory allowed, fixed addresses, offline plans, rematerialization. Each has the Pareto front of bytes and device
calls, or of bytes and time with rematerialization, performance profiles, and places with bootstrap intervals. There is
no score over all tracks.

The tables are written by "vramyard sweep merge", of traces, of logs or of both. Those of traces must be of one device,
and results of other searches than "minimum" are ignored; those of logs must have the same settings. Each strategy is
checked first by generated calls. Short replays then show which device calls it makes, from which its tracks follow. A
strategy that breaks an invariant, may swap to the host, or whose results are of another version of its placements or
lack a trace, a log or a budget, is not listed, and the index says why.`,
		Example: `  vramyard board build results.parquet -o site
  vramyard board build traces.parquet logs.parquet -o site`,
		Args: cobra.MinimumNArgs(1),
		RunE: f.build,
	}
	c.Flags().StringVarP(&f.folder, "output", "o", "", `folder of the site, new or empty, such as "site"`)
	mustHave(c, "output")
	c.Flags().StringVar(&f.device, "device", "",
		"take the results of this device, as the study names it (default: the only one)")
	c.Flags().IntVar(&f.tests, "tests", 200,
		"sequences of calls in the check of each strategy on each device, as of vramyard check")
	c.Flags().Uint64Var(&f.seed, "seed", 0, "seed of the bootstrap")
	addMemory(c, &f.memory)
	return c
}

func (f *boardFlags) build(cmd *cobra.Command, args []string) error {
	if f.tests < 1 || f.tests > mostTests {
		return flagError("tests", fmt.Errorf("want 1 to %d", mostTests))
	}
	if err := checkFolder(f.folder); err != nil {
		return flagError("output", err)
	}
	var results sweep.Results
	var named []string
	for _, path := range args {
		rows, err := readTable(path, f.memory, sweep.ReadResults)
		if err != nil {
			return err
		}
		hash, err := sha256Of(path)
		if err != nil {
			return err
		}
		named = append(named, filepath.Base(path)+" "+hash)
		results.Traces, results.Logs = append(results.Traces, rows.Traces...), append(results.Logs, rows.Logs...)
	}
	b, err := board.Collect(results, f.device, f.catalogue)
	if err == nil {
		err = f.check(cmd, b)
	}
	if err == nil {
		err = b.Probe(cmd.Context())
	}
	if err != nil {
		return err
	}
	b.Rank(f.seed)
	files, err := site.Files(b, site.Options{Version: provenance.Version, Tables: named, Checked: fmt.Sprintf(
		"Each listed strategy passed %d generated sequences of calls for each of its check's devices, with the exceptions "+
			"that it declares: vramyard check --strategies NAME --tests %d.", f.tests, f.tests)})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.folder, 0o777); err != nil {
		return err
	}
	bytes := 0
	for _, file := range files {
		bytes += len(file.Data)
		err := fileio.Write(filepath.Join(f.folder, file.Name), nil, func(w io.Writer) error {
			_, err := w.Write(file.Data)
			return err
		})
		if err != nil {
			return err
		}
	}
	return new(outputs).write(cmd.OutOrStdout(), func(w io.Writer) error { return boardSummary(w, b, files, bytes) })
}

// sha256Of returns the SHA-256 of a file.
func sha256Of(path string) (string, error) {
	f, err := openFile(path)
	if err != nil {
		return "", err
	}
	defer f.Close() // only read from
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// boardSummary writes the answers of a board and the entries that are not listed.
func boardSummary(w io.Writer, b *board.Board, files []site.File, bytes int) error {
	for _, t := range b.Tracks {
		if _, err := fmt.Fprintf(w, "%s: %s\n", t.Title, t.Answer); err != nil {
			return err
		}
	}
	for _, e := range b.Unlisted() {
		if _, err := fmt.Fprintf(w, "not listed: %s: %s\n", e.Name(), e.Unlisted); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%s, %s.\n", units.Several(len(files), "file"), units.Bytes(device.Size(bytes)))
	return err
}

// checkFolder returns an error unless a folder is empty or does not exist.
func checkFolder(path string) error {
	entries, err := os.ReadDir(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fileio.CheckOutput(path)
	case err != nil:
		return err
	case len(entries) > 0:
		return fmt.Errorf("%s: it has files, such as %s: want a new or empty folder", path, entries[0].Name())
	}
	return nil
}

// check checks the strategies of a board. A strategy that fails is not listed.
func (f *boardFlags) check(cmd *cobra.Command, b *board.Board) error {
	p := begin(cmd, stage{unit: "strategies", total: int64(len(b.Entries))})
	verdicts := map[string]string{} // of a setup, without an earlier run to plan by and with any heuristic
	for _, e := range b.Entries {
		if e.Unlisted == "" && !e.Counting() {
			setup := fmt.Sprintf("%s %+v", e.Setup.Name, e.Setup.Config)
			why, known := verdicts[setup]
			if !known {
				var err error
				if why, err = f.verdict(cmd, e.Setup); err != nil {
					return err
				}
				verdicts[setup] = why
			}
			e.Unlisted = why
		}
		p.step()
	}
	return nil
}

// verdict returns why a strategy does not pass its check, "" if it does. The error is the
// context's.
func (f *boardFlags) verdict(cmd *cobra.Command, s setting.Setup) (string, error) {
	if overlaps(s) {
		return "it declares that blocks may overlap", nil
	}
	subjects, err := check.Subjects(s, sim.Config{})
	if err != nil {
		return "it cannot be checked: " + err.Error(), nil
	}
	r, err := check.Run(cmd.Context(), subjects, check.Options{Sequences: f.tests, Seed: 1})
	if cmd.Context().Err() != nil {
		return "", cmd.Context().Err()
	}
	if err != nil {
		return "it cannot be checked: " + err.Error(), nil
	}
	for _, failure := range r.Failures() {
		n := failure.Violation.Number
		return fmt.Sprintf("its check broke %v (%s)", n, n.Name()), nil
	}
	return "", nil
}

// overlaps reports whether a strategy declares to break the disjointness of blocks, which has no
// exceptions.
func overlaps(s setting.Setup) bool {
	return slices.ContainsFunc(s.Promises.Except, func(e promise.Exception) bool {
		n, _ := props.ParseNumber(e.Invariant)
		return n == props.IDisjoint
	})
}

// percentage is the value of a flag: a share in percent.
type percentage float64

func (p *percentage) String() string { return strconv.FormatFloat(100*float64(*p), 'g', -1, 64) + "%" }

func (p *percentage) Type() string { return "percent" }

func (p *percentage) Set(text string) error {
	number, found := strings.CutSuffix(text, "%")
	x, err := strconv.ParseFloat(number, 64)
	if !found || err != nil || !(x > 0 && x <= 100) {
		return errors.New(`want a percentage above 0 and at most 100, such as "1%"`)
	}
	*p = percentage(x / 100)
	return nil
}

func newBoardAudit(catalogue setting.Catalogue) *cobra.Command {
	share := percentage(0.01)
	var seed uint64
	var traces string
	var memory device.Size
	c := &cobra.Command{
		Use:   "audit RESULTS.parquet",
		Short: "Compute a sample of the cells again and compare every exact figure",
		Long: `Compute a sample of the cells of merged results again, at least one, without a store, and compare all exact figures
byte for byte. The output says how many cells were checked, and how many may differ nevertheless with 95 % confidence.
The exit status is 1 if a cell differs; each is named, with its first figure that differs.

Traces inside the program are found by name. The file of any other trace or op log is found by its path in the
table, relative to the folder of the table or to --traces, or else by its name without endings in that folder. It must
have the hash in the table.`,
		Example: "  vramyard board audit results.parquet --sample 5% --seed 7",
		Args:    cobra.ExactArgs(1),
	}
	c.Flags().Var(&share, "sample", "share of the cells")
	c.Flags().Uint64Var(&seed, "seed", 0, "seed of the choice")
	c.Flags().StringVar(&traces, "traces", "", `folder of the traces, such as "runs" (default: the folder of the table)`)
	addMemory(c, &memory)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		results, err := readTable(args[0], memory, sweep.ReadResults)
		if err != nil {
			return err
		}
		if results.Len() == 0 {
			return fmt.Errorf("%s: no results", args[0])
		}
		open := filesIn(cmp.Or(traces, folder(args[0])), sweepFiles(cmd, ".", memory))
		a, err := audit(cmd, catalogue, results, float64(share), seed, open)
		if err != nil {
			return err
		}
		err = new(outputs).write(cmd.OutOrStdout(), func(w io.Writer) error {
			for i := range a.Differences {
				if _, err := fmt.Fprintln(w, a.Differences[i].Error()); err != nil {
					return err
				}
			}
			_, err := fmt.Fprintf(w, "%v.\n", a)
			return err
		})
		if err == nil && len(a.Differences) > 0 {
			err = failure{&a.Differences[0]}
		}
		return err
	}
	return c
}

// audit computes a sample of results again in an empty store.
func audit(cmd *cobra.Command, c setting.Catalogue, results sweep.Results, share float64, seed uint64,
	open sweep.Open) (a *sweep.Audit, err error) {
	empty, err := os.MkdirTemp("", "vramyard-audit-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(empty)) }()
	store, err := cell.OpenDir(empty)
	if err != nil {
		return nil, err
	}
	chosen, cells := sweep.Sample(results, share, seed)
	p := begin(cmd, stage{unit: "cells", total: int64(chosen.Len())})
	a = &sweep.Audit{Cells: cells, Checked: chosen.Len()}
	a.Differences, err = sweep.Repeat(cmd.Context(), chosen, sweep.Worker{Catalogue: c, Open: open, Store: store,
		Memory: heapLeft(), Done: p.step})
	return a, err
}

// filesIn opens the traces and logs of results: inside the program, by their path relative to a
// folder, or by their names in it.
func filesIn(folder string, open sweep.Open) sweep.Open {
	return sweep.Open{
		Trace: func(spec string) (sweep.Opened, error) {
			if inside(spec) {
				return open.Trace(spec)
			}
			path, err := named(spec, folder)
			if err != nil {
				return sweep.Opened{}, err
			}
			return open.Trace(path)
		},
		Log: func(spec string) (*grid.Log, error) {
			path, err := named(spec, folder)
			if err != nil {
				return nil, err
			}
			return open.Log(path)
		},
	}
}

// named returns the path of a file, which may be relative to a folder, or else of the one in the
// folder that has its name, endings aside.
func named(spec, folder string) (string, error) {
	path := filepath.FromSlash(spec)
	if !filepath.IsAbs(path) {
		path = filepath.Join(folder, path)
	}
	for _, path := range []string{path, filepath.Join(folder, filepath.Base(path))} {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return filepath.Abs(path)
		}
	}
	want := stem(spec)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return "", fmt.Errorf("file %s: %w", want, err)
	}
	var found []string
	for _, e := range entries {
		if !e.IsDir() && stem(e.Name()) == want {
			found = append(found, e.Name())
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("file %s: none of this name in %s: --traces names its folder", want, folder)
	case 1:
		return filepath.Abs(filepath.Join(folder, found[0]))
	}
	return "", fmt.Errorf("file %s: %s in %s: want one of this name, or %s", want, board.Joined(found), folder,
		filepath.Base(path))
}

// stem returns the name of a file without its folder and endings.
func stem(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".")
	return name
}
