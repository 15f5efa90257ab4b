package page

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed" // assets
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/top"
)

// Schema is the schema of the data in a page.
const Schema = "vramyard-page/1"

// Report is the content of a page.
type Report struct {
	Kind       string           // compare, replay, whatif, bench or check
	Title      string           // in the head of the page
	Provenance provenance.Build // the program
	Command    string           // command line that repeats the run, without the folders of files
	Facts      []Fact           // other inputs needed to repeat it: seed, device, settings
	Sheets     []report.Sheet   // tables, readable without scripts
	Texts      []Text           // preformatted terminal output
	Plots      []Plot           // rendered plots
	Traces     []Traced         // traces with their runs; [Report.Add] needs less memory for many
	Calls      []Calls          // call latencies of the runs of a benchmark, in order
	More       map[string]any   // extra sections as JSON, for the script; lists of at most 200
	Limit      int              // most bytes of the page; 0: 5 MB
	// Live says that the server answers requests of the script, see [WriteTile], [WriteSnapshot] and
	// [WriteSeries].
	Live bool

	thinnings int   // number of thinnings so far
	weights   []int // approximate bytes of each trace in the page
}

// Text is preformatted text.
type Text struct {
	Title string // caption
	Body  string // the text
}

// Plot is a rendered plot.
type Plot struct {
	Title string // caption
	SVG   []byte // the image; its scripts are not executed
}

// Calls is the call latencies of a run.
type Calls struct {
	Alloc *replay.Histogram // calls of Alloc
	Free  *replay.Histogram // calls of Free
}

// Fact is a name and a value.
type Fact struct {
	Name  string // the name
	Value string // the value
}

// Traced is a trace with its runs.
type Traced struct {
	Picture *Trace      // pictures common to all runs
	Runs    []Run       // in the order of the table
	Stacks  Stacks      // allocation stacks; nil: unknown
	Top     *top.Report // memory by holder; nil: not computed
}

// Run is a replay of a trace through a strategy.
type Run struct {
	Strategy string          // name and preset
	Config   json.RawMessage // configuration
	Device   any             // device settings, as JSON
	Color    int             // index in the palette; a strategy has the same one everywhere
	Figures  any             // figures, as JSON
	Report   any             // report of the first failure, as JSON; may be nil
	Picture  *Picture        // nil: see Missing
	Missing  string          // why there is no picture
}

var (
	//go:embed assets/page.html
	pageHTML string
	//go:embed assets/page.css
	pageCSS string
	//go:embed assets/uplot.js
	uplotJS string
	//go:embed assets/uplot.frame.js
	uplotFrame string
	//go:embed assets/uplot.css
	uplotCSS string
	//go:embed assets/uplot.LICENSE
	uplotLicence string
)

// licence is a licence of software included in the page.
type licence struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

func licences() []licence { return []licence{{"uPlot 1.6.32", uplotLicence}} }

// layout is the template of the page.
var layout = template.Must(template.New("page").Parse(pageHTML))

// defaultLimit is a size that mail and wikis accept and browsers open at once.
const defaultLimit = 5_000_000

// Add adds a trace to Traces, and thins all pictures as soon as they exceed the limit of the page,
// so that memory holds little more than the page. Write would thin them as often, or more. It
// encodes the trace, and all traces after each thinning. It fails if a value cannot be encoded as
// JSON.
func (r *Report) Add(t Traced) error {
	all := []Traced{t}
	for range r.thinnings {
		all = thinned(all)
	}
	r.Traces, r.weights = append(r.Traces, all...), append(r.weights, 0)
	changed := len(r.Traces) - 1 // first trace to weigh again
	for {
		total := 0
		for i := range r.Traces {
			if i >= changed {
				var err error
				if r.weights[i], err = weigh(&r.Traces[i]); err != nil {
					return err
				}
			}
			total += r.weights[i]
		}
		if total <= cmp.Or(r.Limit, defaultLimit) {
			return nil
		}
		thinner := thinned(r.Traces)
		if sizeOf(thinner) == sizeOf(r.Traces) {
			return nil // everything is at its minimum
		}
		r.Traces, changed = thinner, 0
		r.thinnings++
	}
}

// weigh returns the bytes that a trace takes in a page. The sum over traces slightly exceeds their
// size together, by less than the rest of a page takes.
func weigh(t *Traced) (int, error) {
	e := &encoder{}
	about, data, err := e.parts(e.trace(t))
	return len(about) + len(data), err
}

// Write writes the page, deterministically. Pictures are thinned until the page is within its
// limit; tables and texts are never cut.
func Write(w io.Writer, r *Report) error {
	limit, traces := cmp.Or(r.Limit, defaultLimit), r.Traces
	for {
		text, err := render(r, traces)
		if err != nil {
			return err
		}
		thinner := traces
		for excess := len(text); excess > limit; excess /= 2 {
			thinner = thinned(thinner)
		}
		if sizeOf(thinner) == sizeOf(traces) { // it fits, or everything is at its minimum
			_, err := w.Write(text)
			return err
		}
		traces = thinner
	}
}

func render(r *Report, traces []Traced) ([]byte, error) {
	e := &encoder{arena: arena{fast: r.Live}}
	drawn := make([]object, len(traces))
	for i := range traces {
		drawn[i] = e.trace(&traces[i])
	}
	o := object{
		"schema": Schema, "kind": r.Kind, "title": clip(r.Title), "provenance": r.Provenance, "command": r.Command,
		"licences": licences(), "states": states(), "traces": drawn,
	}
	if r.Live {
		o["live"] = true
	}
	if len(r.Calls) > 0 {
		o["calls"] = column(r.Calls, func(c *Calls) object {
			return object{"alloc": e.histogram(c.Alloc), "free": e.histogram(c.Free)}
		})
	}
	for name, section := range r.More {
		o[name] = e.callerJSON(section)
	}
	about, data, err := e.parts(o)
	if err != nil {
		return nil, err
	}
	var page bytes.Buffer
	err = layout.Execute(&page, fill(r, about, data))
	return page.Bytes(), err
}

// thinned returns the traces with about half as much detail.
func thinned(traces []Traced) []Traced {
	all := make([]Traced, len(traces))
	for i, t := range traces {
		pictures := make([]*Picture, len(t.Runs))
		for k := range t.Runs {
			pictures[k] = t.Runs[k].Picture
		}
		all[i].Picture, pictures = t.Picture.Thinner(pictures)
		all[i].Runs, all[i].Stacks, all[i].Top = slices.Clone(t.Runs), t.Stacks, t.Top
		for k := range pictures {
			all[i].Runs[k].Picture = pictures[k]
		}
	}
	return all
}

// sizeOf returns a measure of detail that each thinning decreases.
func sizeOf(traces []Traced) (n int) {
	for _, t := range traces {
		n += t.Picture.Grid.Len() + len(t.Picture.Tags) + len(t.Picture.Marks)
		for _, r := range t.Runs {
			if p := r.Picture; p != nil {
				n += len(p.Rects) + len(p.Regions) + len(p.Raster.Cells) + len(p.Failures)
				for i := range p.Snapshots {
					n += len(p.Snapshots[i].Chunks)
				}
			}
		}
	}
	return n
}

// filling is the data of the layout.
type filling struct {
	*Report
	Policy   string
	First    bool // pictures precede the tables
	CSS      []template.CSS
	Scripts  []template.HTML // whole elements
	Data     []template.HTML // whole elements
	Images   []image
	Licences []licence
	Sources  []source
}

// image is an embedded plot.
type image struct {
	Title  string
	Source template.URL
}

// source is the part of a trace that is readable without scripts.
type source struct {
	Name, SHA256 string
	Events       int
	Facts        []Fact
	Runs         []Fact // strategies with their configurations
}

// fill returns the data of the layout. Scripts cannot be ended early: escaped JSON and base64
// contain no "<".
func fill(r *Report, about, data string) *filling {
	f := &filling{
		Report: r, Licences: licences(),
		First: r.Kind == "replay" || r.Kind == "view", // the table of a run is higher than a window
		CSS:   []template.CSS{template.CSS(uplotCSS), template.CSS(pageCSS)},
		Data: []template.HTML{
			template.HTML(`<script type="application/json" id="vy-report">` + about + `</script>`),
			template.HTML(`<script type="text/plain" id="vy-data">` + data + `</script>`),
		},
	}
	policy := []string{"default-src 'none'", "style-src 'unsafe-inline'", "img-src data: blob:", "script-src"}
	if r.Live {
		policy = slices.Insert(policy, 1, "connect-src 'self'")
	}
	for _, js := range []string{plotScript(), pageScript(r.Live)} {
		sum := sha256.Sum256([]byte(js))
		policy[len(policy)-1] += fmt.Sprintf(" 'sha256-%s'", base64.StdEncoding.EncodeToString(sum[:]))
		f.Scripts = append(f.Scripts, template.HTML("<script>"+js+"</script>"))
	}
	f.Policy = strings.Join(policy, "; ")
	for _, p := range r.Plots {
		f.Images = append(f.Images, image{
			p.Title, template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(p.SVG)),
		})
	}
	for i := range r.Traces {
		f.Sources = append(f.Sources, sourceOf(&r.Traces[i]))
	}
	return f
}

// sourceOf returns the script-free part of a trace.
func sourceOf(t *Traced) source {
	h := t.Picture.Head.Header
	s := source{Name: clip(h.Name), SHA256: h.Hash, Events: t.Picture.Head.Events}
	for _, p := range h.Meta {
		s.Facts = append(s.Facts, Fact{clip(p.Key), clip(p.Value)})
	}
	for i := range t.Runs {
		s.Runs = append(s.Runs, Fact{clip(t.Runs[i].Strategy), string(t.Runs[i].Config)})
	}
	return s
}

// Is reports whether text is a page written by [Write].
func Is(text []byte) bool { return bytes.Contains(text, []byte(`id="vy-report"`)) }
