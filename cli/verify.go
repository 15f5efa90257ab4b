package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/verify"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/internal/budget"
	"github.com/vramyard/vramyard/internal/units"
	"github.com/vramyard/vramyard/strategies/caching"
)

type verifyFlags struct {
	catalogue         setting.Catalogue
	addresses, config string
	files             outputs
	source            formats.Options
}

func newVerify(catalogue setting.Catalogue) *cobra.Command {
	f := verifyFlags{catalogue: catalogue}
	c := &cobra.Command{
		Use:   "verify [flags] SNAPSHOT | verify --addresses FILE [flags] TRACE",
		Short: "Compare the strategy caching with a recording of PyTorch's allocator",
		Long: `Compare the strategy caching with a recording of PyTorch's allocator: starting from the recorded
state, it must place every allocation at the recorded address and reserve segments of the same
sizes for the same allocations. Releases of segments are taken from the recording, because the
recording does not have the card's capacity.

A SNAPSHOT is what torch.cuda.memory._dump_snapshot writes (plain, .gz, .xz or .zst), or "-" for
standard input. The strategy has the recorded settings, unless --config replaces them. Each
device with a history is verified, or only the one of --part.

With --addresses, a TRACE in any format has the requests, and FILE has the addresses of its
allocations and segments. docs/verify.md describes the formats.

The exit status is 0 if every allocation is predicted, 1 if not, and 2 if the recording cannot be
read.`,
		Example: "  vramyard verify snapshot.pickle\n  vramyard verify run.csv.gz --addresses run.addr.gz",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	c.Flags().StringVar(&f.addresses, "addresses", "", `the recorded addresses, "-" for standard input`)
	addConfig(c, &f.config, "settings as a JSON object; they replace caching's defaults, or the "+
		"recorded ones")
	f.files.add(c, "json", `also write the result as JSON to this file, "-" for standard output instead of text`)
	addPart(c, &f.source)
	c.Flags().Lookup("part").Usage = "device of a snapshot, such as cuda:0 (default: every device)"
	return c
}

func (f *verifyFlags) run(cmd *cobra.Command, path string) error {
	if err := f.files.check(path, f.addresses); err != nil {
		return err
	}
	if err := onceFromStdin([]string{path, f.addresses}); err != nil {
		return err
	}
	if f.addresses == "" {
		return f.snapshot(cmd, path)
	}
	if f.source.Part != "" {
		return flagError("part", errors.New("--addresses is for one device"))
	}
	target, err := cachingTarget(f.catalogue, f.config)
	if err != nil {
		return err
	}
	h, err := f.history(cmd, path)
	if err != nil {
		return err
	}
	return f.verify(cmd, h, target)
}

// verify compares the strategy with a recording and prints the result.
func (f *verifyFlags) verify(cmd *cobra.Command, h *verify.History, target *verify.Target) error {
	begin(cmd, stage{what: "verifying " + units.Printable(h.Name)})
	res, err := verify.Run(h, target)
	if err != nil {
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	res.Provenance = provenance.Read()
	stdout := cmd.OutOrStdout()
	f.files.json(res)
	err = f.files.write(stdout, func(w io.Writer) error { return report.Verification(w, res) })
	if !res.All() {
		err = errors.Join(failure{fmt.Errorf("%s: %d of %d allocations are not predicted", h.Name, res.Allocs-res.Predicted,
			res.Allocs)}, err)
	}
	return err
}

func (f *verifyFlags) history(cmd *cobra.Command, path string) (*verify.History, error) {
	t, err := openTrace(path, reading(cmd, path, f.source), cmd.InOrStdin())
	if err != nil {
		return nil, err
	}
	begin(cmd, stage{what: "reading the addresses"})
	collectWithin(f.source.Memory)
	lines, err := openLines(f.addresses, f.source.Memory, cmd.InOrStdin())
	if err != nil {
		return nil, err
	}
	defer lines.Close()
	h, err := verify.Read(t, lines)
	if doubt := lines.Truncated(); err == nil && doubt != nil {
		warnings(cmd)(doubt)
	}
	return h, err
}

// openLines opens a file that accompanies a trace, or standard input for "-".
func openLines(path string, most device.Size, stdin io.Reader) (*trace.Lines, error) {
	if path == "-" {
		return trace.NewLines(stdin, "stdin", budget.New(most))
	}
	return trace.OpenLines(path, budget.New(most))
}

// cachingName is the name of the strategy that is compared with recordings.
const cachingName = "caching"

// cachingTarget returns the strategy that is compared with recordings.
func cachingTarget(catalogue setting.Catalogue, config string) (*verify.Target, error) {
	setup, err := catalogue.Lookup(cachingName, json.RawMessage(config))
	if err != nil {
		return nil, err
	}
	c, ok := setup.Config.(caching.Config)
	if !ok {
		return nil, fmt.Errorf("the strategy %s of this program is not PyTorch's", cachingName)
	}
	raw, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	sizes, err := c.BlockSizes()
	if err != nil {
		return nil, err
	}
	return &verify.Target{
		Strategy: setup.Name,
		Config:   raw,
		Open: func(src device.Source, opening []alloc.Chunk) (verify.Seedable, error) {
			return caching.Open(src, c, opening)
		},
		Round:   sizes.Round,
		Segment: sizes.Segment,
		Unsplit: sizes.Unsplit,
	}, nil
}
