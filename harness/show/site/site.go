package site

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/harness/remat/grid"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/board"
	"github.com/vramyard/vramyard/harness/study/sweep"
	"github.com/vramyard/vramyard/internal/units"
)

// File is a file of the site.
type File struct {
	Name string // without a folder
	Data []byte // its content
}

// Options of a site.
type Options struct {
	Checked string   // how the strategies were checked, in a sentence
	Version string   // of the program
	Tables  []string // of results, each with its hash
}

//go:embed site.html
var pagesText string

var pages = template.Must(template.New("site").Funcs(template.FuncMap{
	"times": times, "cost": cost, "bytes": units.Bytes, "place": place, "calls": func(e *board.Entry) string {
		if s := e.CallNames(); s != "" {
			return s
		}
		return "none"
	},
	"several": units.Several[int], "settings": settings, "printable": units.Printable,
}).Parse(pagesText))

// factors are the columns of a table of a performance profile.
var factors = []float64{1, 1.02, 1.05, 1.1, 1.2, 1.5, 2}

// page is the data of a page.
type page struct {
	Title   string
	Answer  string // first sentence
	Board   *board.Board
	Options Options
	Links   []link // to the pages of the inputs
	Track   *board.Track
	Kind    *board.Kind
	Input   *board.Input
	Tried   string // budgets of runs of logs
	Bottom  []line
	Cells   []cell
	Factors []float64
	Figures []figure
}

type link struct {
	File, Title string
	Kind        *board.Kind
	Input       *board.Input
}

// line is a line of a track with its profile.
type line struct {
	*board.Line
	Within []string // shares of the inputs, by factor
}

// cell is the result of an entry on an input.
type cell struct {
	Entry    *board.Entry
	Tracks   string
	Bytes    string
	Multiple string
	Cost     string
	Runs     []run
	order    float64
}

// run is a result with the command that repeats it.
type run struct{ Means, Hash, Command string }

// figure is a picture with its meaning.
type figure struct{ File, Alt, Caption string }

// Files returns the files of a board whose tracks are set, the index first.
func Files(b *board.Board, o Options) ([]File, error) {
	s := &site{b: b, o: o}
	links := append(s.links(board.OnTraces), s.links(board.OnLogs)...)
	listed := slices.Clone(links)
	slices.SortStableFunc(listed, func(x, y link) int {
		return cmp.Or(strings.Compare(y.Kind.Input, x.Kind.Input), strings.Compare(x.Title, y.Title)) // traces first
	})
	index := page{Title: "Board of GPU memory allocators", Answer: s.summary(), Links: listed}
	if err := s.add("index.html", "index", index); err != nil {
		return nil, err
	}
	for _, t := range b.Tracks {
		if err := s.track(t, listed); err != nil {
			return nil, err
		}
	}
	for i, l := range links {
		if l.Kind == board.OnLogs {
			i -= len(b.Traces)
		}
		if err := s.input(i, l); err != nil {
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

// unfit matches the characters of a name that a file name should not have.
var unfit = regexp.MustCompile(`[^A-Za-z0-9_.]+`)

// links returns the pages of the inputs of a kind, in the order of the board.
func (s *site) links(k *board.Kind) (all []link) {
	taken := map[string]bool{}
	inputs := s.b.Inputs(k)
	for i := range inputs {
		const most = 80
		name := k.Input + "-" + unfit.ReplaceAllString(inputs[i].Name, "-")
		name = name[:min(len(name), most)]
		if taken[name] {
			name = fmt.Sprintf("%s-%d", name, i)
		}
		taken[name] = true
		all = append(all, link{name + ".html", units.Printable(inputs[i].Name), k, &inputs[i]})
	}
	return all
}

// summary returns the first sentence of the index.
func (s *site) summary() string {
	var answers, over []string
	for _, t := range s.b.Tracks {
		if short := t.Short(); short != "" {
			answers = append(answers, short)
		}
	}
	if len(answers) == 0 {
		return "No result: no strategy is listed."
	}
	for _, k := range []*board.Kind{board.OnTraces, board.OnLogs} {
		if n := len(s.b.Inputs(k)); n > 0 {
			over = append(over, units.Several(n, k.Input))
		}
	}
	return fmt.Sprintf("There is no single best allocator; over %s the least memory has: %s.", board.Joined(over),
		strings.Join(answers, "; "))
}

// track adds the page of a track and its pictures.
func (s *site) track(t *board.Track, links []link) error {
	p := page{Title: t.Title, Answer: t.Answer, Track: t, Kind: t.Kind}
	if len(t.Lines) > 0 && t.Kind == board.OnLogs {
		var sets []string
		for i := range s.b.Logs {
			if set := tried(t.Lines[0].Entry, i); !slices.Contains(sets, set) {
				sets = append(sets, set)
			}
		}
		p.Tried = strings.Join(sets, "; of other logs ")
	}
	for _, l := range links {
		if l.Kind == t.Kind {
			p.Links = append(p.Links, l)
		}
	}
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
		{"pareto", over(t.Kind), fmt.Sprintf("Bytes against %s, both as geometric means over the %ss. Lower and further "+
			"left is better. Strategies that do not complete every %[2]s are not drawn. %s", t.Kind.Cost, t.Kind.Input,
			t.Kind.Front), pareto},
		{"profile", fmt.Sprintf("share of the %ss over the factor of the least memory", t.Kind.Input),
			fmt.Sprintf("Performance profile: the share of the %ss on which a strategy needs at most this factor of the "+
				"track's least memory. Higher is better; a strategy that fails on a %[1]s never reaches 1.", t.Kind.Input),
			profile},
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

// over describes a picture of the figures of a kind.
func over(k *board.Kind) string { return k.Bytes + " over " + k.Cost }

// input adds the page of an input and its picture.
func (s *site) input(i int, l link) error {
	p := page{Title: l.Title, Kind: l.Kind, Input: l.Input}
	for _, e := range s.b.Entries {
		if e.Unlisted == "" && e.Kind == l.Kind {
			p.Cells = append(p.Cells, s.cell(e, i, l.Input))
		}
	}
	if len(p.Cells) > 0 && l.Kind == board.OnLogs {
		p.Tried = tried(p.Cells[0].Entry, i)
	}
	slices.SortStableFunc(p.Cells, func(x, y cell) int {
		return cmp.Or(cmp.Compare(x.order, y.order), strings.Compare(x.Entry.Name(), y.Entry.Name()))
	})
	p.Answer = inputAnswer(p.Cells, l.Kind)
	data, err := s.inputPicture(i, l)
	if err != nil {
		return err
	}
	if data != nil {
		file := strings.TrimSuffix(l.File, ".html") + ".svg"
		s.files = append(s.files, File{file, data})
		p.Figures = []figure{{file, over(l.Kind), fmt.Sprintf("Bytes against %s on this %s, each strategy with the "+
			"figures of its row. Lower and further left is better.", l.Kind.Cost, l.Kind.Input)}}
	}
	return s.add(l.File, "input", p)
}

// cell returns the result of an entry on an input.
func (s *site) cell(e *board.Entry, i int, in *board.Input) cell {
	f := e.Figures[i]
	c := cell{Entry: e, Bytes: "failed", Multiple: "–", Cost: "–", order: e.Multiple(i, in.LowerBound)}
	var tracks []string
	for _, t := range s.b.Tracks {
		if slices.ContainsFunc(t.Lines, func(l *board.Line) bool { return l.Entry == e }) {
			tracks = append(tracks, t.ID)
		}
	}
	c.Tracks = strings.Join(tracks, ", ")
	if !math.IsInf(c.order, 1) {
		c.Bytes, c.Multiple = units.Count(uint64(f.Bytes)), board.Times(c.order)
	}
	if f.Cost != nil {
		c.Cost = e.Kind.Format(*f.Cost)
	}
	if e.Kind == board.OnLogs {
		c.Runs = s.runs(e, i, in)
	} else {
		c.Runs = []run{{Hash: e.Cells[i].Cell, Command: s.compare(e, i)}}
	}
	return c
}

// compare returns the command that repeats a result of a trace.
func (s *site) compare(e *board.Entry, i int) string {
	r := e.Cells[i]
	words := []string{"compare", "--strategies", e.Setup.Name}
	if s.b.Device != "sim" { // the default
		words = append(words, "--device", s.b.Device)
	}
	if s.b.FreeAt != replay.AtCompleted {
		words = append(words, "--free-at", string(s.b.FreeAt))
	}
	if r.Learn != "" {
		words = append(words, "--learn", r.Learn)
	}
	return command(append(words, s.b.Traces[i].Name))
}

// command returns a command of the program.
func command(words []string) string {
	text := "vramyard"
	for _, w := range words {
		text += " " + report.ShellWord(units.Printable(w))
	}
	return text
}

// runs returns the runs that decide the figure of an entry on a log: within the smallest budget
// that completes, and within the next smaller one.
func (s *site) runs(e *board.Entry, i int, in *board.Input) (all []run) {
	var above []grid.Ratio
	var below *sweep.RematResult
	least := e.Smallest(i)
	for _, r := range e.Runs[i] {
		switch {
		case least == nil || r.Ratio < least.Ratio:
			below = r
		case !r.Completed():
			above = append(above, r.Ratio)
		}
	}
	if least != nil {
		means := fmt.Sprintf("completes within %v × the peak", least.Ratio)
		if len(above) > 0 {
			means += ", but fails within " + ranges(above)
		}
		all = append(all, run{means, least.Cell, s.remat(least)})
	}
	if below != nil {
		means := fmt.Sprintf("fails within %v × the peak: %s", below.Ratio,
			units.Printable(cmp.Or(below.Failed, string(below.Verdict))))
		if below.Failed == "" {
			means += fmt.Sprintf(" (%s bytes, %s × bound)", units.Count(uint64(below.Budget)),
				board.Times(float64(below.Budget)/float64(in.LowerBound)))
		}
		all = append(all, run{means, below.Cell, s.remat(below)})
	}
	return all
}

// tried lists the budgets of an entry on a log. Every listed entry has the same ones.
func tried(e *board.Entry, log int) string {
	var all []grid.Ratio
	for _, r := range e.Runs[log] {
		all = append(all, r.Ratio)
	}
	return ranges(all)
}

// ranges lists sorted ratios, and equal steps as a range.
func ranges(all []grid.Ratio) string {
	const least = 4 // ratios of a range
	var parts []string
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n]-all[n-1] == all[1]-all[0] {
			n++
		}
		if n < least {
			n = 1
			parts = append(parts, all[0].String())
		} else {
			parts = append(parts, fmt.Sprintf("%v to %v in steps of %v", all[0], all[n-1], all[1]-all[0]))
		}
		all = all[n:]
	}
	return board.Joined(parts)
}

// remat returns the command that repeats a run of a log.
func (s *site) remat(r *sweep.RematResult) string {
	words := []string{"remat", filepath.Base(r.Path), "--heuristics", r.Heuristic, "--strategies", r.Strategy, "--ladders",
		r.Ladder, "--budgets", r.Ratio.String()}
	usual := grid.Usual()
	normal := usual.Fields()
	for i, set := range s.b.Settings.Fields() {
		if value := set.String(); value != normal[i].String() {
			words = append(words, "--"+set.Flag+"="+value)
		}
	}
	return command(words)
}

// inputAnswer returns the first sentence of the page of an input.
func inputAnswer(cells []cell, k *board.Kind) string {
	var best []string
	least, among := math.Inf(1), ""
	for _, c := range cells {
		switch {
		case c.Entry.Learned:
			among = " of the strategies without an earlier run to plan by"
		case c.Entry.Reference() || math.IsInf(c.order, 1) || c.order > least: // sorted
		default:
			least = c.order
			best = append(best, c.Entry.Name())
		}
	}
	if len(best) == 0 {
		return fmt.Sprintf("No result: no strategy%s completes this %s.", strings.TrimPrefix(among, " of the strategies"),
			k.Input)
	}
	verb := "needs"
	if len(best) > 1 {
		verb = "need"
	}
	return fmt.Sprintf("On this %s %s %s the least memory%s, %s times the lower bound; the figures are exact, but one "+
		"%[1]s does not rank strategies.", k.Input, board.JoinedFew(best), verb, among, board.Times(least))
}

func times(x *float64) string {
	if x == nil {
		return "–"
	}
	return board.Times(*x)
}

// settings lists the settings of all runs of logs.
func settings(b *board.Board) string {
	var all []string
	for _, s := range b.Settings.Fields() {
		if value := s.String(); value != "" {
			all = append(all, s.Flag+" "+value)
		}
	}
	return strings.Join(all, ", ")
}

func cost(k *board.Kind, x *float64) string {
	if x == nil {
		return "–"
	}
	return k.Format(*x)
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
