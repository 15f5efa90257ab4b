package cli

import (
	"encoding/json"
	"hash/fnv"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/page"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/study/postmortem"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
)

// immaterial are flags that affect how a command runs or serves, but not its results.
var immaterial = []string{"cache", "for", "no-browser", "port", "workers"}

// commandLine returns the words that repeat a command, without immaterial flags. File
// names lose their folders, because pages are passed on to other machines.
func commandLine(cmd *cobra.Command, args []string) string {
	words := []string{cmd.CommandPath()}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if slices.Contains(immaterial, f.Name) {
			return
		}
		value := report.ShellWord(baseOf(f.Value.String()))
		if f.Value.Type() == "bool" {
			words = append(words, "--"+f.Name+"="+value)
		} else {
			words = append(words, "--"+f.Name, value)
		}
	})
	for _, a := range args {
		words = append(words, report.ShellWord(baseOf(a)))
	}
	return strings.Join(words, " ")
}

// baseOf returns the name of a file without its folder, and other words as they are.
func baseOf(word string) string {
	if strings.HasPrefix(strings.TrimSpace(word), "{") || !strings.ContainsAny(word, `/\`) {
		return word
	}
	return filepath.Base(word)
}

// colors returns a function from names of strategies to numbers in the palette, the same on every
// page: first the strategies that are compared by default, then the rest of the catalogue.
func colors(c setting.Catalogue) func(name string) int {
	order := c.Default(setting.Compared)
	for _, n := range c.Names() {
		if !slices.Contains(order, n) {
			order = append(order, n)
		}
	}
	return func(name string) int {
		if i := slices.Index(order, name); i >= 0 {
			return i
		}
		// A plug-in: its number is a hash of its name without the folder. Two plug-ins usually
		// differ.
		h := fnv.New32a()
		_, _ = io.WriteString(h, baseOf(name)) // never fails
		return len(order) + int(h.Sum32()%pluginLooks)
	}
}

// pluginLooks is the number of pairs of a color and a mark that pages can draw.
const pluginLooks = 48

// drawing is a run to be drawn.
type drawing struct {
	setup   setting.Setup
	color   int // in the palette
	device  sim.Config
	figures any
	latency *replay.Latency // of single calls, if that was measured before
	missing string          // why it cannot be drawn; empty if it can
}

// allocationStacks maps traces to the allocation stacks of the snapshots that they
// were converted from.
type allocationStacks map[trace.Source]*postmortem.Stacks

// open is [openSource], and stores the stacks.
func (a allocationStacks) open(path string, o formats.Options, stdin io.Reader) (trace.Source, error) {
	src, of, err := openRecording(openSource, path, o, stdin)
	if err == nil && of.Snapshot != nil {
		a[src] = of.Stacks()
	}
	return src, err
}

// draw replays a trace through several strategies once more and draws what happens. stacks is nil
// if they are unknown.
func draw(cmd *cobra.Command, p *replay.Prepared, stacks *postmortem.Stacks, runs []drawing,
	o page.Options) (page.Traced, error) {
	bar := begin(cmd, stage{what: "drawing", unit: "runs", total: int64(len(runs))})
	t, err := page.NewTrace(p.Source(), o)
	if err != nil {
		return page.Traced{}, err
	}
	drawn := page.Traced{Picture: t, Runs: make([]page.Run, len(runs))}
	if stacks != nil {
		drawn.Stacks = stacks
	}
	err = compare.NewPool(0, heapLeft()).Each(len(runs), p, func(i int) (err error) {
		drawn.Runs[i], err = drawOne(t, p, &runs[i], o)
		bar.step()
		return err
	})
	if err != nil {
		return page.Traced{}, err
	}
	if drawn.Top, err = topOf(p.Recorded(), stacks); err != nil {
		return page.Traced{}, err
	}
	return drawn, explain(&drawn, p, stacks, runs, o)
}

// mostExplained bounds the failed requests that are explained for all strategies.
const mostExplained = 4

// oomReport is the page's explanation of the first OOM of a run.
type oomReport struct {
	*postmortem.Verdict
	Others []*postmortem.Verdict `json:"others"` // outcome of that request in every other strategy
}

// explain adds the explanation of the first OOM of each run, and the outcome of that request in the
// others.
func explain(t *page.Traced, p *replay.Prepared, stacks *postmortem.Stacks, runs []drawing, o page.Options) error {
	asked := map[int][]*postmortem.Verdict{}
	for i := range t.Runs {
		drawn := t.Runs[i].Picture
		if drawn == nil || drawn.Result.OOMs == 0 {
			continue
		}
		at := drawn.FirstOOM
		if asked[at] == nil && len(asked) < mostExplained {
			for k := range runs {
				v, err := answerTo(p, stacks, &runs[k], at, o)
				if err != nil {
					return err
				}
				asked[at] = append(asked[at], v)
			}
		}
		if asked[at] == nil {
			v, err := answerTo(p, stacks, &runs[i], at, o)
			if err != nil {
				return err
			}
			v.Failures = int(drawn.Result.OOMs)
			t.Runs[i].Report = oomReport{Verdict: v}
			continue
		}
		r := oomReport{Verdict: asked[at][i]}
		r.Failures = int(drawn.Result.OOMs)
		for k, v := range asked[at] {
			if k != i {
				other := *v
				other.Report = nil // its own first failure has it
				r.Others = append(r.Others, &other)
			}
		}
		t.Runs[i].Report = r
	}
	return nil
}

// answerTo returns the outcome of a request in a strategy's replay.
func answerTo(p *replay.Prepared, stacks *postmortem.Stacks, d *drawing, event int,
	o page.Options) (*postmortem.Verdict, error) {
	options := postmortem.Options{
		Event: event, FreeAt: o.FreeAt, Step: o.Step, Device: func() (device.Device, error) { return sim.New(d.device) },
	}
	if stacks != nil {
		options.Stacks = stacks.Places
	}
	return postmortem.Replay(p, d.setup, options)
}

func drawOne(t *page.Trace, p *replay.Prepared, d *drawing, o page.Options) (page.Run, error) {
	config, err := json.Marshal(d.setup.Config)
	if err != nil {
		return page.Run{}, err
	}
	run := page.Run{
		Strategy: d.setup.Name, Config: config, Device: d.device, Color: d.color, Figures: d.figures,
		Missing: d.missing,
	}
	if d.missing != "" {
		return run, nil
	}
	o.Latency = o.Latency && d.latency == nil
	run.Picture, err = t.Draw(p, d.setup, func() (device.Device, error) { return sim.New(d.device) }, o)
	if err == nil && d.latency != nil {
		run.Picture.Alloc, run.Picture.Free = d.latency.AllocCalls, d.latency.FreeCalls
	}
	return run, err
}
