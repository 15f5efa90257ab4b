package diff

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/vramyard/vramyard/internal/budget"
	"github.com/vramyard/vramyard/internal/fileio"
)

// form locates the runs in a result.
type form struct {
	schema   string
	list     string   // field with the list of runs; "": the result is a run
	points   []string // fields that are runs, or list runs, of the strategy named by the result
	left     []string // ignored fields
	settings []string // settings among the fields of a result that is a run
	more     []string // figures that also identify a run
	strategy string   // strategy of unnamed runs
}

// forms are the results that can be compared.
var forms = []form{
	{schema: "vramyard-bench/1", list: "runs", left: []string{"loops"}},
	{schema: "vramyard-compare/1", list: "runs"},
	{schema: "vramyard-offline/1", list: "traces", strategy: "offline"},
	{schema: "vramyard-remat/1", list: "runs", left: []string{"lines", "logs"},
		more: []string{"ladder", "heuristic", "ratio"}},
	{schema: "vramyard-replay/1", left: []string{"series"}, settings: []string{fieldDevice}},
	{schema: "vramyard-tune/1", list: "runs", points: []string{"preset", "smallest", "fastest"},
		left: []string{"evaluated_points", "worth"}},
	{schema: "vramyard-verify/1"},
	{schema: "vramyard-whatif/1", list: "runs"},
}

// The fields that identify a run. Alternatives are for workloads, then for logs or placements.
const (
	fieldSchema     = "schema"
	fieldProvenance = "provenance"
	// fieldVersion is the version of the program, in results before 0.2.0.
	fieldVersion  = "version"
	fieldDevice   = "device"
	fieldStrategy = "strategy"
	fieldConfig   = "config"
	// fieldParameters are the parameters of a workload, part of its name.
	fieldParameters = "parameters"
)

var (
	fieldsTrace = []string{"trace", "workload", "model"}
	fieldsHash  = []string{"trace_sha256", "workload_hash", "sha256", "log_sha256"}
)

// Schemas returns the readable schemas, sorted.
func Schemas() []string {
	var names []string
	for _, f := range forms {
		names = append(names, f.schema)
	}
	return names
}

// Result is the content of one file.
type Result struct {
	Schema   string   // of the file
	Settings []Figure // fields outside of the runs, sorted by name
	Runs     []Run    // in file order
}

// Name identifies a run.
type Name struct {
	Trace    string          `json:"trace"`            // name of the trace, or workload with parameters
	Hash     string          `json:"trace_sha256"`     // of the trace or the workload
	Strategy string          `json:"strategy"`         // name and preset, and the point of a search
	Config   json.RawMessage `json:"config,omitempty"` // configuration, with sorted fields
}

// Run is the figures of one run.
type Run struct {
	Name
	Figures []Figure // sorted by name
}

// Figure is a named value.
type Figure struct {
	Name  string // path of fields, joined with dots
	Value Value  // value
}

// Figure returns a figure, or the zero value.
func (r *Run) Figure(name string) Value {
	i, ok := slices.BinarySearchFunc(r.Figures, name, func(f Figure, n string) int { return strings.Compare(f.Name, n) })
	if !ok {
		return Value{}
	}
	return r.Figures[i].Value
}

// Read reads the result of a command, compressed or not. It rejects invalid JSON, duplicate fields,
// numbers outside of float64, unknown schemas, unnamed runs, and files that exceed the memory
// budget.
func Read(r io.Reader, memory *budget.Budget) (*Result, error) {
	plain, err := fileio.NewReader(r)
	if err != nil {
		return nil, err
	}
	defer plain.Close()
	var lists []string
	for _, f := range forms {
		lists = append(lists, f.lists()...)
	}
	if head, err := plain.Peek(headBytes); err == nil {
		if other := otherForm(head); other != "" {
			return nil, fmt.Errorf("not a result of this program but %s: want --json output of schema %s", other,
				strings.Join(Schemas(), ", "))
		}
	}
	root, items, err := parse(plain, lists, memory)
	if err != nil {
		return nil, err
	}
	schema := root.field(fieldSchema)
	if schema.kind != KindText {
		return nil, fmt.Errorf("not a result of this program: want an object with a field %q", fieldSchema)
	}
	i := slices.IndexFunc(forms, func(f form) bool { return f.schema == schema.Text() })
	if i < 0 {
		return nil, fmt.Errorf("schema %s: want one of %s", schema.text, strings.Join(Schemas(), ", "))
	}
	return forms[i].read(root, items)
}

// headBytes are examined by [otherForm], shownBytes shown in an error.
const (
	headBytes  = 64
	shownBytes = 32
)

// otherForm describes a file by its first bytes, "" if they may start a JSON object.
func otherForm(head []byte) string {
	head = bytes.TrimLeft(head, " \t\r\n")
	line, _, _ := bytes.Cut(head, []byte("\n"))
	begins := fmt.Sprintf("that begins with %q", line[:min(len(line), shownBytes)])
	switch {
	case len(head) == 0 || head[0] == '{':
		return ""
	case head[0] == '[':
		return "a list in JSON"
	case bytes.HasPrefix(head, []byte("PAR1")):
		return "a Parquet file"
	case bytes.ContainsFunc(line, func(r rune) bool { return unicode.IsControl(r) && r != '\t' && r != '\r' }):
		return "a binary file"
	case bytes.ContainsRune(line, ','):
		return "CSV " + begins
	}
	return "text " + begins
}

func (f *form) lists() []string {
	switch {
	case f.list == "":
		return nil
	case len(f.points) == 0:
		return []string{f.list}
	}
	var paths []string
	for _, p := range f.points {
		paths = append(paths, p+"."+f.list)
	}
	return paths
}

func (f *form) read(root Value, items map[string][]Value) (*Result, error) {
	res := &Result{Schema: f.schema}
	if f.list == "" {
		run, err := f.run(root, "")
		if err != nil {
			return nil, err
		}
		res.Runs = []Run{run}
		for _, x := range root.fields {
			if ofProgram(x.name) || slices.Contains(f.settings, x.name) {
				res.Settings = setting(res.Settings, x)
			}
		}
		return res, sortFigures(res.Settings)
	}
	for _, path := range f.lists() {
		top, _, _ := strings.Cut(path, ".")
		if listed := root.at(path); listed.kind != KindList {
			return nil, fmt.Errorf("%q: want a list of runs", path)
		}
		suffix := ""
		if len(f.points) > 0 {
			suffix = " (" + top + ")"
			point := root.field(top)
			point.fields = append([]field{{fieldStrategy, root.field(fieldStrategy)},
				{fieldsTrace[0], Value{kind: KindText, text: `"all traces"`}}}, point.fields...)
			run, err := f.run(point, suffix)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", top, err)
			}
			res.Runs = append(res.Runs, run)
		}
		for i, item := range items[path] {
			run, err := f.run(item, suffix)
			if err != nil {
				return nil, fmt.Errorf("%q, run %d: %w", path, i, err)
			}
			res.Runs = append(res.Runs, run)
		}
	}
	skip := append([]string{fieldSchema, f.list}, slices.Concat(f.points, f.left)...)
	for _, x := range root.fields {
		if !slices.Contains(skip, x.name) {
			res.Settings = setting(res.Settings, x)
		}
	}
	return res, sortFigures(res.Settings)
}

// ofProgram reports whether a field is about the program that made the result.
func ofProgram(name string) bool {
	return name == fieldVersion || name == fieldProvenance || strings.HasPrefix(name, fieldProvenance+".")
}

// setting appends a field of the whole result. The older field of the version has the newer name.
func setting(to []Figure, x field) []Figure {
	if x.name == fieldVersion {
		x.name = fieldProvenance + "." + fieldVersion
	}
	return flatten(to, x.name, x.value)
}

func (v Value) at(path string) Value {
	for name := range strings.SplitSeq(path, ".") {
		v = v.field(name)
	}
	return v
}

// Text returns the value of a string, "" for other kinds.
func (v Value) Text() string {
	var s string
	if v.kind != KindText || json.Unmarshal([]byte(v.text), &s) != nil {
		return ""
	}
	return s
}

// run reads a run. suffix distinguishes its strategy from others of the same name.
func (f *form) run(v Value, suffix string) (Run, error) {
	r := Run{Name: Name{Strategy: f.strategy}}
	if v.kind != kindObject {
		return r, fmt.Errorf("want an object")
	}
	for _, x := range v.fields {
		text := func() error {
			if x.value.kind != KindText {
				return fmt.Errorf("%q: want a string", x.name)
			}
			return nil
		}
		var err error
		switch {
		case x.name == fieldSchema || ofProgram(x.name) || x.name == f.list || slices.Contains(f.left, x.name) ||
			slices.Contains(f.settings, x.name):
		case x.name == fieldStrategy:
			r.Strategy, err = x.value.Text()+suffix, text()
		case slices.Contains(fieldsTrace, x.name):
			r.Trace, err = x.value.Text()+r.Trace, text()
		case slices.Contains(fieldsHash, x.name):
			r.Hash, err = x.value.Text(), text()
		case x.name == fieldParameters:
			r.Trace += " " + x.value.text
		case x.name == fieldConfig:
			r.Config = json.RawMessage(x.value.text)
		default:
			r.Figures = flatten(r.Figures, x.name, x.value)
		}
		if err != nil {
			return r, err
		}
	}
	if r.Strategy == suffix || r.Trace == "" {
		return r, fmt.Errorf("want %q and %q to identify the run", fieldStrategy, fieldsTrace[0])
	}
	if len(f.more) > 0 {
		r.Figures = append(r.Figures, Figure{fieldStrategy, v.field(fieldStrategy)})
	}
	for _, name := range f.more {
		r.Strategy += " " + cmp.Or(v.field(name).Text(), v.field(name).text)
	}
	return r, sortFigures(r.Figures)
}

// flatten appends the figures of a value, named by path.
func flatten(to []Figure, name string, v Value) []Figure {
	if v.kind != kindObject {
		return append(to, Figure{name, v})
	}
	for _, x := range v.fields {
		to = flatten(to, name+"."+x.name, x.value)
	}
	return to
}

// sortFigures sorts by name. It rejects duplicates, which field names with dots can cause.
func sortFigures(list []Figure) error {
	slices.SortFunc(list, func(x, y Figure) int { return strings.Compare(x.Name, y.Name) })
	for i := 1; i < len(list); i++ {
		if list[i].Name == list[i-1].Name {
			return fmt.Errorf("duplicate figure %q", list[i].Name)
		}
	}
	return nil
}
