package gate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/diff"
	"github.com/vramyard/vramyard/harness/study/top"
	"github.com/vramyard/vramyard/internal/nearest"
	"github.com/vramyard/vramyard/internal/strictyaml"
)

// BaselineSchema is the schema of a [Baseline] in YAML.
const BaselineSchema = "vramyard-budget/1"

// Baseline is the content of the committed file.
type Baseline struct {
	Tolerance map[Figure]string // accepted increases, such as "2%" or "10MiB"; absent: none
	Budgets   []*Budget         // in file order
}

// Budget is the budget of one recording.
type Budget struct {
	Name     string            // of the recording
	Line     int               // in the file; 0: not from a file
	Strategy string            // allocator that the work is replayed through
	Config   json.RawMessage   // over the strategy's preset; nil: none
	Step     string            // text of a mark at which steps begin; empty: found in the marks
	Steps    *int              // judged steps, warm-up included; 0: the whole recording; nil: all
	Warmup   *int              // of the steps; nil: one if there are two
	Figures  map[State]Figures // a figure that is absent is not judged
	Version  string            // of the program that wrote the entry
	Hash     string            // of the recording that it was written from
	By       top.Grouping      // property that names the blocks
	Above    device.Size       // kinds of blocks with fewer bytes in sum are not listed
	Blocks   []top.Kind        // allocations of the work, without stacks
}

// Part returns the steps that the budget is of.
func (b *Budget) Part() Part { return Part{Step: b.Step, Steps: b.Steps, Warmup: b.Warmup} }

// New reports whether the budget has no figures yet.
func (b *Budget) New() bool {
	for _, f := range b.Figures {
		if len(f) > 0 {
			return false
		}
	}
	return true
}

// Budget returns the budget of a recording, nil if there is none.
func (b *Baseline) Budget(name string) *Budget {
	i := slices.IndexFunc(b.Budgets, func(e *Budget) bool { return e.Name == name })
	if i < 0 {
		return nil
	}
	return b.Budgets[i]
}

// limits bound the file: a kind of blocks takes some 100 bytes.
var limits = strictyaml.Limits{Bytes: 1 << 26, Depth: 8}

var (
	errSchema    = fmt.Errorf("want %q under the key schema", BaselineSchema)
	errBudgets   = errors.New("want the budgets of recordings by name")
	errEntry     = errors.New("want the budget of a recording")
	errTolerance = errors.New("want figures with tolerances, such as peak_reserved: 2%")
	errFigures   = errors.New("want figures with their budgets")
	errBlocks    = errors.New("want a list of blocks")
	errText      = errors.New("want a text")
	errSize      = errors.New("want a number of bytes, or a size such as 24GiB")
	errCount     = errors.New("want a number, not negative")
	errConfig    = errors.New("want settings of the strategy by name")
	errStrategy  = errors.New("want the key strategy")
	errAmount    = errors.New("want a share such as 2%, or an amount such as 10MiB")
	errGrouping  = fmt.Errorf("want %q, %q or %q under the key blocks_by", top.ByCallSite, top.ByTag, top.BySize)
)

// ReadBaseline reads a budget file. An error names line and column.
func ReadBaseline(r io.Reader) (*Baseline, error) {
	root, err := strictyaml.Read(r, limits)
	if err != nil {
		return nil, err
	}
	if root == nil {
		return nil, errSchema
	}
	b := &Baseline{}
	schema := ""
	err = fields(root, errSchema, map[string]func(*yaml.Node) error{
		"schema":    text(&schema),
		"tolerance": b.readTolerance,
		"budgets": func(n *yaml.Node) error {
			return each(n, errBudgets, func(name string, n *yaml.Node) error {
				e := &Budget{Name: name, Line: n.Line, Figures: map[State]Figures{}}
				b.Budgets = append(b.Budgets, e)
				return e.read(n)
			})
		},
	})
	if err == nil && schema != BaselineSchema {
		err = strictyaml.At(root, errSchema)
	}
	return b, err
}

// fields reads a mapping, each value by the function of its key.
func fields(n *yaml.Node, wrong error, read map[string]func(*yaml.Node) error) error {
	pairs, err := strictyaml.Pairs(n, wrong)
	if err != nil {
		return err
	}
	for _, p := range pairs {
		f := read[p.Key.Value]
		if f == nil {
			var names []string
			for name := range read {
				names = append(names, name)
			}
			slices.Sort(names)
			return strictyaml.At(p.Key, fmt.Errorf("unknown key %q: %s", p.Key.Value, nearest.Want(p.Key.Value, names)))
		}
		if err := f(p.Value); err != nil {
			return err
		}
	}
	return nil
}

// each reads a mapping of names.
func each(n *yaml.Node, wrong error, read func(name string, n *yaml.Node) error) error {
	pairs, err := strictyaml.Pairs(n, wrong)
	for _, p := range pairs {
		if err == nil {
			err = read(p.Key.Value, p.Value)
		}
	}
	return err
}

// text reads a text.
func text(to *string) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if n.Kind != yaml.ScalarNode {
			return strictyaml.At(n, errText)
		}
		*to = n.Value
		return nil
	}
}

// count reads a number.
func count(to *int) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		x, err := strconv.ParseUint(n.Value, 10, 31)
		if n.Kind != yaml.ScalarNode || err != nil {
			return strictyaml.At(n, errCount)
		}
		*to = int(x)
		return nil
	}
}

// present reads a number that may be absent.
func present(to **int) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		*to = new(int)
		return count(*to)(n)
	}
}

// size reads a number of bytes.
func size(to *device.Size) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		x, err := device.ParseSize(n.Value)
		if n.Kind != yaml.ScalarNode || err != nil {
			return strictyaml.At(n, errSize)
		}
		*to = x
		return nil
	}
}

func figureNamed(name string) (Figure, error) {
	if f := Figure(name); slices.Contains(FigureNames, f) {
		return f, nil
	}
	var names []string
	for _, f := range FigureNames {
		names = append(names, string(f))
	}
	return "", fmt.Errorf("unknown figure %q: %s", name, nearest.Want(name, names))
}

func (b *Baseline) readTolerance(n *yaml.Node) error {
	b.Tolerance = map[Figure]string{}
	return each(n, errTolerance, func(name string, n *yaml.Node) error {
		f, err := figureNamed(name)
		switch {
		case err != nil:
		case n.Kind != yaml.ScalarNode || n.Value == "":
			err = errAmount
		default:
			b.Tolerance[f] = n.Value
			_, err = b.violates(f, 0, 0)
		}
		if err != nil {
			return strictyaml.At(n, err)
		}
		return nil
	})
}

// violates reports whether a figure exceeds its budget by more than the tolerance.
func (b *Baseline) violates(f Figure, budget, now uint64) (bool, error) {
	tolerance := b.Tolerance[f]
	if tolerance == "" {
		tolerance = "0"
	}
	name := string(f)
	if f.Bytes() {
		name += "_bytes"
	}
	c, err := diff.ParseCondition(name + ">+" + tolerance)
	if err != nil {
		return false, fmt.Errorf("tolerance %q: %w", tolerance, errAmount)
	}
	return c.Violates(budget, now)
}

// read reads an entry.
func (b *Budget) read(n *yaml.Node) error {
	figures := func(s State) func(*yaml.Node) error {
		return func(n *yaml.Node) error {
			b.Figures[s] = Figures{}
			return each(n, errFigures, func(name string, n *yaml.Node) error {
				f, err := figureNamed(name)
				if err != nil {
					return strictyaml.At(n, err)
				}
				var x device.Size
				read := size(&x)
				if !f.Bytes() {
					read = func(n *yaml.Node) error {
						var c int
						err := count(&c)(n)
						x = device.Size(c)
						return err
					}
				}
				err = read(n)
				b.Figures[s][f] = uint64(x)
				return err
			})
		}
	}
	by := ""
	err := fields(n, errEntry, map[string]func(*yaml.Node) error{
		"strategy": text(&b.Strategy), "config": b.readConfig,
		"step": text(&b.Step), "steps": present(&b.Steps), "warmup": present(&b.Warmup),
		string(Empty): figures(Empty), string(Warm): figures(Warm),
		"written_by": text(&b.Version), "trace_sha256": text(&b.Hash),
		"blocks_by": text(&by), "blocks_above": size(&b.Above), "blocks": b.readBlocks,
	})
	b.By = top.Grouping(by)
	switch {
	case err != nil:
		return err
	case b.Strategy == "":
		return strictyaml.At(n, errStrategy)
	case (by != "" || len(b.Blocks) > 0) && !slices.Contains([]top.Grouping{top.ByCallSite, top.ByTag, top.BySize}, b.By):
		return strictyaml.At(n, errGrouping)
	}
	return nil
}

func (b *Budget) readConfig(n *yaml.Node) error {
	var v map[string]any
	if n.Kind != yaml.MappingNode || n.Decode(&v) != nil {
		return strictyaml.At(n, errConfig)
	}
	config, err := json.Marshal(v)
	if err != nil {
		return strictyaml.At(n, errConfig)
	}
	b.Config = config
	return nil
}

func (b *Budget) readBlocks(n *yaml.Node) error {
	if n.Kind != yaml.SequenceNode {
		return strictyaml.At(n, errBlocks)
	}
	for _, item := range n.Content {
		var k top.Kind
		stream := 0
		err := fields(item, errBlocks, map[string]func(*yaml.Node) error{
			"size": size(&k.Size), "count": count(&k.Count), "at_peak": count(&k.AtPeak), "stream": count(&stream),
			"at": text(&k.At),
		})
		if err != nil {
			return err
		}
		k.Stream = device.Stream(stream)
		b.Blocks = append(b.Blocks, k)
	}
	return nil
}

// Write writes the file.
func (b *Baseline) Write(w io.Writer) error {
	var t strings.Builder
	t.WriteString(`# Memory budgets, which "vramyard gate --baseline THIS-FILE RECORDING..." checks. "--update" lowers figures to
# what the work takes now and adds new recordings; "--update=raise" also raises them. A figure that is removed is
# not judged. Sizes are bytes, or have a unit.
schema: ` + BaselineSchema + "\n")
	if b.Tolerance != nil {
		t.WriteString("tolerance:\n")
		for _, f := range FigureNames {
			if x, ok := b.Tolerance[f]; ok {
				fmt.Fprintf(&t, "  %s: %s\n", f, x)
			}
		}
	}
	t.WriteString("budgets:\n")
	for _, e := range b.Budgets {
		e.write(&t)
	}
	_, err := io.WriteString(w, t.String())
	return err
}

// quoted returns a text as YAML, in quotes: JSON's form is YAML's.
func quoted(s string) string {
	b := &strings.Builder{}
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a text can always be encoded
	return strings.TrimSpace(b.String())
}

func (b *Budget) write(t *strings.Builder) {
	fmt.Fprintf(t, "  %s:\n    strategy: %s\n", quoted(b.Name), quoted(b.Strategy))
	if b.Config != nil {
		fmt.Fprintf(t, "    config: %s\n", b.Config)
	}
	if b.Step != "" {
		fmt.Fprintf(t, "    step: %s\n", quoted(b.Step))
	}
	for _, c := range []struct {
		key   string
		count *int
	}{{"steps", b.Steps}, {"warmup", b.Warmup}} {
		if c.count != nil {
			fmt.Fprintf(t, "    %s: %d\n", c.key, *c.count)
		}
	}
	for _, s := range States {
		if len(b.Figures[s]) == 0 {
			continue
		}
		fmt.Fprintf(t, "    %s:\n", s)
		for _, f := range FigureNames {
			x, ok := b.Figures[s][f]
			switch {
			case !ok:
			case f.Bytes():
				fmt.Fprintf(t, "      %s: %d  # %s\n", f, x, shown(f, x))
			default:
				fmt.Fprintf(t, "      %s: %d\n", f, x)
			}
		}
	}
	if b.Version != "" {
		fmt.Fprintf(t, "    written_by: %s\n    trace_sha256: %s\n", quoted(b.Version), quoted(b.Hash))
	}
	if len(b.Blocks) == 0 {
		return
	}
	fmt.Fprintf(t, "    blocks_by: %s\n", b.By)
	if b.Above > 0 {
		fmt.Fprintf(t, "    blocks_above: %d\n", uint64(b.Above))
	}
	t.WriteString("    blocks:\n")
	for _, k := range b.Blocks {
		stream := ""
		if k.Stream != 0 {
			stream = fmt.Sprintf("stream: %d, ", uint64(k.Stream))
		}
		fmt.Fprintf(t, "      - {size: %d, count: %d, at_peak: %d, %sat: %s}\n", uint64(k.Size), k.Count, k.AtPeak, stream,
			quoted(k.At))
	}
}
