package site

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/board"
	"github.com/vramyard/vramyard/internal/units"
)

// File is a file of the site.
type File struct {
	Name string // without a folder
	Data []byte // its content
}

// Options of a site.
type Options struct {
	Checked string // how the strategies were checked, in a sentence
	Version string // of the program
}

//go:embed site.html
var pagesText string

var pages = template.Must(template.New("site").Funcs(template.FuncMap{
	"times": times, "count": count, "bytes": units.Bytes, "place": place, "calls": func(e *board.Entry) string {
		if s := e.CallNames(); s != "" {
			return s
		}
		return "none"
	},
	"several": units.Several[int],
}).Parse(pagesText))

// factors are the columns of a table of a performance profile.
var factors = []float64{1, 1.02, 1.05, 1.1, 1.2, 1.5, 2}

// page is the data of a page.
type page struct {
	Title   string
	Answer  string // first sentence
	Board   *board.Board
	Options Options
	Links   []link // to the pages of the traces
	Track   *board.Track
	Trace   *board.Trace
	Bottom  []line
	Cells   []cell
	Factors []float64
	Figures []figure
}

type link struct {
	File, Title string
	Trace       *board.Trace
}

// line is a line of a track with its profile.
type line struct {
	*board.Line
	Within []string // shares of the traces, by factor
}

// cell is the result of an entry on a trace.
type cell struct {
	Entry    *board.Entry
	Tracks   string
	Minimum  string
	Multiple string
	Calls    string
	Command  string
	Hash     string
	order    float64
}

// figure is a picture with its meaning.
type figure struct{ File, Alt, Caption string }

// Files returns the files of a board whose tracks are set, the index first.
func Files(b *board.Board, o Options) ([]File, error) {
	s := &site{b: b, o: o}
	links := s.links()
	listed := slices.Clone(links)
	slices.SortStableFunc(listed, func(x, y link) int { return strings.Compare(x.Title, y.Title) })
	index := page{Title: "Board of GPU memory allocators", Answer: s.summary(), Links: listed}
	if err := s.add("index.html", "index", index); err != nil {
		return nil, err
	}
	for _, t := range b.Tracks {
		if err := s.track(t, listed); err != nil {
			return nil, err
		}
	}
	for i := range b.Traces {
		if err := s.trace(i, links); err != nil {
			return nil, err
		}
	}
	return s.files, nil
}

type site struct {
	b     *board.Board
	o     Options
	files []File
}

// add adds a page made from a template.
func (s *site) add(name, of string, p page) error {
	p.Board, p.Options, p.Factors = s.b, s.o, factors
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, of, p); err != nil {
		return err
	}
	s.files = append(s.files, File{name, b.Bytes()})
	return nil
}

// unfit matches the characters of a trace's name that a file name should not have.
var unfit = regexp.MustCompile(`[^A-Za-z0-9_.]+`)

// links returns the pages of the traces, in the order of the board.
func (s *site) links() (all []link) {
	taken := map[string]bool{}
	for i := range s.b.Traces {
		t := &s.b.Traces[i]
		const most = 80
		name := "trace-" + unfit.ReplaceAllString(t.Name, "-")
		name = name[:min(len(name), most)]
		if taken[name] {
			name = fmt.Sprintf("%s-%d", name, i)
		}
		taken[name] = true
		all = append(all, link{name + ".html", units.Printable(t.Name), t})
	}
	return all
}

// summary returns the first sentence of the index.
func (s *site) summary() string {
	var answers []string
	for _, t := range s.b.Tracks {
		if short := t.Short(); short != "" {
			answers = append(answers, short)
		}
	}
	if len(answers) == 0 {
		return "No result: no strategy is listed."
	}
	return fmt.Sprintf("There is no single best allocator; over %s the least memory has: %s.",
		units.Several(len(s.b.Traces), "trace"), strings.Join(answers, "; "))
}

// track adds the page of a track and its pictures.
func (s *site) track(t *board.Track, links []link) error {
	p := page{Title: t.Title, Answer: t.Answer, Links: links, Track: t}
	for _, l := range t.Lines {
		row := line{Line: l}
		for _, f := range factors {
			if l.Place > 0 {
				row.Within = append(row.Within, units.Fixed(100*l.Within(f), 0))
			}
		}
		p.Bottom = append(p.Bottom, row)
	}
	for _, f := range []struct {
		name, alt, caption string
		draw               func(*board.Track) ([]byte, error)
	}{
		{"pareto", "minimum capacity over device calls",
			"Bytes against device calls, both as geometric means over the traces. Lower " +
				"and further left is better. Strategies that do not complete every trace are not drawn.", pareto},
		{"profile", "share of the traces over the factor of the least memory",
			"Performance profile: the share of the traces on " +
				"which a strategy needs at most this factor of the track's least memory. Higher is better; a strategy that " +
				"fails on a trace never reaches 1.", profile},
	} {
		data, err := f.draw(t)
		if err != nil {
			return err
		}
		if data != nil {
			file := f.name + "-" + t.ID + ".svg"
			s.files = append(s.files, File{file, data})
			p.Figures = append(p.Figures, figure{file, f.alt, f.caption})
		}
	}
	return s.add(t.ID+".html", "track", p)
}

// trace adds the page of a trace and its picture.
func (s *site) trace(i int, links []link) error {
	t := &s.b.Traces[i]
	p := page{Title: units.Printable(t.Name), Links: links, Trace: t}
	for _, e := range s.b.Entries {
		if e.Unlisted == "" {
			p.Cells = append(p.Cells, s.cell(e, i))
		}
	}
	slices.SortStableFunc(p.Cells, func(x, y cell) int {
		switch {
		case x.order < y.order:
			return -1
		case x.order > y.order:
			return 1
		}
		return strings.Compare(x.Entry.Setup.Name, y.Entry.Setup.Name)
	})
	p.Answer = traceAnswer(p.Cells)
	data, err := s.tracePicture(i)
	if err != nil {
		return err
	}
	if data != nil {
		file := strings.TrimSuffix(links[i].File, ".html") + ".svg"
		s.files = append(s.files, File{file, data})
		p.Figures = []figure{{file, "minimum capacity over device calls",
			"Bytes against device calls on this trace. Lower and further left is better."}}
	}
	return s.add(links[i].File, "trace", p)
}

// cell returns the result of an entry on a trace.
func (s *site) cell(e *board.Entry, i int) cell {
	r := e.Cells[i]
	c := cell{Entry: e, Minimum: "failed", Multiple: "–", Calls: "–", Hash: r.Cell,
		order: e.Multiple(i, s.b.Traces[i].LowerBound), Command: s.command(e, i)}
	var tracks []string
	for _, t := range s.b.Tracks {
		if slices.ContainsFunc(t.Lines, func(l *board.Line) bool { return l.Entry == e }) {
			tracks = append(tracks, t.ID)
		}
	}
	c.Tracks = strings.Join(tracks, ", ")
	if !math.IsInf(c.order, 1) {
		c.Minimum, c.Multiple = units.Count(uint64(*r.MinCapacity)), board.Times(c.order)
	}
	if n, ok := e.DeviceCalls(i); ok {
		c.Calls = units.Count(n)
	}
	return c
}

// command returns the command that repeats a cell.
func (s *site) command(e *board.Entry, i int) string {
	r := e.Cells[i]
	words := []string{"vramyard", "compare", "--strategies", e.Setup.Name}
	if s.b.Device != "sim" { // the default
		words = append(words, "--device", s.b.Device)
	}
	if s.b.FreeAt != replay.AtCompleted {
		words = append(words, "--free-at", string(s.b.FreeAt))
	}
	if r.Learn != "" {
		words = append(words, "--learn", r.Learn)
	}
	words = append(words, s.b.Traces[i].Name)
	for i, w := range words {
		words[i] = report.ShellWord(units.Printable(w))
	}
	return strings.Join(words, " ")
}

// traceAnswer returns the first sentence of a trace's page.
func traceAnswer(cells []cell) string {
	var best []string
	least := bestOf(cells)
	for _, c := range cells {
		if !c.Entry.Setup.Baseline && !c.Entry.Learned && c.order == least && !math.IsInf(least, 1) {
			best = append(best, c.Entry.Setup.Name)
		}
	}
	if len(best) == 0 {
		return "No strategy without an earlier run to plan by completes this trace."
	}
	verb := "needs"
	if len(best) > 1 {
		verb = "need"
	}
	return fmt.Sprintf("On this trace %s %s the least memory of the strategies without an earlier run to plan by, %s "+
		"times the lower bound; the figures are exact, but one trace does not rank strategies.", board.Joined(best), verb,
		board.Times(least))
}

// bestOf returns the least multiple of the strategies that a trace's answer names.
func bestOf(cells []cell) float64 {
	least := math.Inf(1)
	for _, c := range cells {
		if !c.Entry.Setup.Baseline && !c.Entry.Learned {
			least = min(least, c.order)
		}
	}
	return least
}

func times(x *float64) string {
	if x == nil {
		return "–"
	}
	return board.Times(*x)
}

func count(x *float64) string {
	if x == nil {
		return "–"
	}
	return units.Count(uint64(math.Round(*x)))
}

// place formats a place with its interval.
func place(l *board.Line) string {
	switch {
	case l.Place == 0:
		return "reference"
	case l.Low == 0:
		return fmt.Sprint(l.Place)
	}
	return fmt.Sprintf("%d (%d to %d)", l.Place, l.Low, l.High)
}
