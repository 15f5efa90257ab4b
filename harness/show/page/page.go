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

	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/top"
)

// Schema names the form of the data in a page.
const Schema = "vramyard-page/1"

// Report is what a page shows.
type Report struct {
	Kind    string         // compare, replay, whatif, bench or check
	Title   string         // in the head of the page
	Version string         // of the program
	Command string         // the words that repeat the run, files without their folders
	Facts   []Fact         // what else is needed to repeat it: seed, device, settings
	Sheets  []report.Sheet // tables, readable without scripts
	Texts   []Text         // what reads best as it stands in a terminal
	Plots   []Plot         // pictures that are finished
	Traces  []Traced       // pictures; [Report.Add] adds those of many traces in less memory
	Calls   []Calls        // latencies of the runs of a benchmark, in their order
	More    map[string]any // sections of the kind, for the script, as JSON; lists of at most 200
	Limit   int            // most bytes of the page; 0 is 5 MB
	Live    bool           // who serves the page answers questions of its script, see [Tile], [Moment] and [Series]

	thinnings int   // that what was added has been through
	weights   []int // about how many bytes of the page each of what was added takes
}

// Text is lines of text.
type Text struct {
	Title string // what they are
	Body  string // the lines
}

// Plot is a finished picture.
type Plot struct {
	Title string // what it shows
	SVG   []byte // the picture; scripts in it are not run
}

// Calls is how long the calls of a run took.
type Calls struct {
	Alloc *replay.Histogram // of Alloc
	Free  *replay.Histogram // of Free
}

// Fact is something that is said of a run.
type Fact struct {
	Name  string // what it is
	Value string // what it says
}

// Traced is a trace with the runs on it.
type Traced struct {
	Picture *Trace      // what is drawn of the trace
	Runs    []Run       // in the order of the table
	Stacks  Stacks      // where the program asked for memory; nil: it is not known
	Top     *top.Report // who holds memory; nil: it was not looked at
}

// Run is one strategy on a trace.
type Run struct {
	Strategy string          // name and preset
	Config   json.RawMessage // its configuration
	Device   any             // settings of the device, as JSON
	Color    int             // in the palette; the same for a strategy everywhere
	Figures  any             // its figures, as JSON
	Report   any             // of the first failure, as JSON; nil for none
	Picture  *Picture        // nil if there is none
	Missing  string          // why there is none
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

// licence is the licence of something inside the page.
type licence struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

func licences() []licence { return []licence{{"uPlot 1.6.32", uplotLicence}} }

// layout is the page with places to fill.
var layout = template.Must(template.New("page").Parse(pageHTML))

// defaultLimit is the most bytes of a page: what mails and wikis take, and browsers open at once.
const defaultLimit = 5_000_000

// Add adds a trace to Traces. Pictures that are too large for the page are thinned as soon as that
// is known, and not when the last of them is there, so that memory holds little more than the page.
// Write would thin them as often, or more. It costs one encoding of the trace, and one of every
// trace each time that all are thinned. It fails where Write would, for what is no JSON.
func (r *Report) Add(t Traced) error {
	all := []Traced{t}
	for range r.thinnings {
		all = thinned(all)
	}
	r.Traces, r.weights = append(r.Traces, all...), append(r.weights, 0)
	changed := len(r.Traces) - 1 // the first that is to be weighed
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
			return nil // there is nothing left to take away
		}
		r.Traces, changed = thinner, 0
		r.thinnings++
	}
}

// weigh returns how many bytes the pictures of a trace take in a page, with what is said of them.
// Together they take a little less than one by one, and less so than the rest of a page takes.
func weigh(t *Traced) (int, error) {
	e := &encoder{}
	about, data, err := e.parts(e.trace(t))
	return len(about) + len(data), err
}

// Write writes the page. The same report gives the same bytes. Pictures that are too large together
// are thinned until the page is within its limit; what is said in tables and texts is not.
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
		if sizeOf(thinner) == sizeOf(traces) { // it fits, or there is nothing left to take away
			_, err := w.Write(text)
			return err
		}
		traces = thinner
	}
}

// render returns the page with some pictures.
func render(r *Report, traces []Traced) ([]byte, error) {
	e := &encoder{}
	drawn := make([]object, len(traces))
	for i := range traces {
		drawn[i] = e.trace(&traces[i])
	}
	o := object{
		"schema": Schema, "kind": r.Kind, "title": clip(r.Title), "version": r.Version, "command": r.Command,
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
		o[name] = e.given(section)
	}
	about, data, err := e.parts(o)
	if err != nil {
		return nil, err
	}
	var page bytes.Buffer
	err = layout.Execute(&page, fill(r, about, data))
	return page.Bytes(), err
}

// thinned returns the pictures with about half as much in them.
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

// sizeOf returns a figure that is lower for thinner pictures.
func sizeOf(traces []Traced) (n int) {
	for _, t := range traces {
		n += t.Picture.Grid.Len() + len(t.Picture.Tags) + len(t.Picture.Marks)
		for _, r := range t.Runs {
			if p := r.Picture; p != nil {
				n += len(p.Rects) + len(p.Regions) + len(p.Raster.Cells) + len(p.Failures)
				for i := range p.Instants {
					n += len(p.Instants[i].Chunks)
				}
			}
		}
	}
	return n
}

// filling is what fills the layout.
type filling struct {
	*Report
	Policy   string
	First    bool // pictures come before the tables
	CSS      []template.CSS
	Scripts  []template.HTML // whole elements
	Data     []template.HTML // likewise
	Images   []image
	Licences []licence
	Sources  []source
}

// image is a plot as the page holds it.
type image struct {
	Title  string
	Source template.URL
}

// source is a trace as the page names it without scripts.
type source struct {
	Name, SHA256 string
	Events       int
	Facts        []Fact
	Runs         []Fact // strategies with their configuration
}

// fill returns what fills the layout. What goes into scripts is written by ourselves and can not
// end one: JSON has no "<", nor has base64.
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

// sourceOf returns what the page says of a trace without scripts.
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

// Is reports whether text is a page that [Write] wrote.
func Is(text []byte) bool { return bytes.Contains(text, []byte(`id="vy-report"`)) }
