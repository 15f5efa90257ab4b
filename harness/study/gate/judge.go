package gate

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/study/top"
	"github.com/vramyard/vramyard/internal/units"
)

// Schema is the schema of a [Report] in JSON.
const Schema = "vramyard-gate/1"

// Update is how a budget follows the figures.
type Update string

// The updates.
const (
	UpdateNone  Update = ""      // the file stays
	UpdateLower Update = "lower" // figures fall to the measured ones; new recordings get a budget
	UpdateRaise Update = "raise" // figures also rise
)

// Updates lists the updates that change the file.
var Updates = []Update{UpdateLower, UpdateRaise}

// Verdict is the outcome for one figure.
type Verdict string

// The verdicts.
const (
	Kept      Verdict = "kept"      // equal to the budget
	Tolerated Verdict = "tolerated" // above the budget, within the tolerance
	Violated  Verdict = "VIOLATED"  // above the budget
	Improved  Verdict = "improved"  // below the budget, which could be lowered
	Lowered   Verdict = "lowered"   // below the old budget, which was lowered
	Raised    Verdict = "raised"    // above the old budget, which was raised
	Added     Verdict = "added"     // the recording had no budget
)

// Check is the comparison of one figure with its budget.
type Check struct {
	State     State   `json:"state"`     // of the pool
	Figure    Figure  `json:"figure"`    // name
	Budget    *uint64 `json:"budget"`    // before an update; null: none
	Now       *uint64 `json:"now"`       // measured; null: no tried device is large enough
	Tolerance string  `json:"tolerance"` // accepted increase
	Verdict   Verdict `json:"verdict"`   // outcome
}

// Shown returns a value of the check for people.
func (c *Check) Shown(x *uint64) string {
	if x == nil {
		return "—"
	}
	return shown(c.Figure, *x)
}

// Change returns the difference to the budget for people, "" if there is none to show.
func (c *Check) Change() string {
	if c.Budget == nil || c.Now == nil || *c.Budget == *c.Now {
		return ""
	}
	sign, by := "+", *c.Now-*c.Budget
	if *c.Now < *c.Budget {
		sign, by = "-", *c.Budget-*c.Now
	}
	text := sign + shown(c.Figure, by)
	if *c.Budget > 0 {
		text += fmt.Sprintf(" (%s%s)", sign, units.Percent(float64(by)/float64(*c.Budget)))
	}
	return text
}

// shown returns a value for people.
func shown(f Figure, x uint64) string {
	if f.Bytes() {
		return units.Bytes(device.Size(x))
	}
	return strconv.FormatUint(x, 10)
}

// Result is the outcome for one recording.
type Result struct {
	Name     string   `json:"trace"`        // of the recording
	Hash     string   `json:"trace_sha256"` // of its file
	Strategy string   `json:"strategy"`     // that the work was replayed through
	Steps    int      `json:"step_count"`   // judged, warm-up included; 0: the whole recording
	Warmup   int      `json:"warmup_count"` // of the steps
	Checks   []Check  `json:"checks"`       // by state and figure
	Causes   []Cause  `json:"causes"`       // of a regression, the largest first
	Sites    []Site   `json:"sites"`        // of a regression: bytes live at the peak, by call site
	Notes    []string `json:"notes"`        // limits of the figures
	Line     int      `json:"-"`            // of the budget in its file; 0: it is new
}

// Report is the outcome of a gate.
type Report struct {
	Schema     string           `json:"schema"`     // the constant Schema
	Provenance provenance.Build `json:"provenance"` // the program
	Baseline   string           `json:"baseline"`   // path of the budget file
	Results    []Result         `json:"runs"`       // in the order of the command line
	Missing    []string         `json:"missing"`    // budgets whose recordings were not given
}

// Violated returns the number of violated figures; a missing recording counts as one.
func (r *Report) Violated() int {
	n := len(r.Missing)
	for i := range r.Results {
		n += r.Results[i].Violated()
	}
	return n
}

// Violated returns the number of violated figures.
func (r *Result) Violated() (n int) {
	for i := range r.Checks {
		if r.Checks[i].Verdict == Violated {
			n++
		}
	}
	return n
}

// Missing returns the names of the budgets that no given recording has.
func (b *Baseline) Missing(given []string) []string {
	missing := []string{}
	for _, e := range b.Budgets {
		if !slices.Contains(given, e.Name) {
			missing = append(missing, e.Name)
		}
	}
	return missing
}

// Judge compares the figures of a work with its budget e, and updates the budget. A budget without
// figures is new: it takes all of them. It explains violated figures by the blocks of the work.
func (b *Baseline) Judge(e *Budget, w *Work, now map[State]Figures, how Update, version string) (*Result, error) {
	r := &Result{
		Name: w.Name, Hash: w.Hash, Strategy: e.Strategy, Steps: w.Steps, Warmup: w.Warmup, Notes: w.Notes,
		Checks: []Check{}, Causes: []Cause{}, Sites: []Site{}, Line: e.Line,
	}
	by, blocks, err := w.Blocks()
	if err != nil {
		return nil, err
	}
	fresh := e.New()
	e.Steps, e.Warmup = &w.Steps, &w.Warmup
	exact := true // the budget is of these blocks
	for _, s := range States {
		if fresh && now[s] != nil {
			e.Figures[s] = Figures{}
		}
		for _, f := range FigureNames {
			budget, judged := e.Figures[s][f]
			switch {
			case judged && now[s] == nil:
				return nil, fmt.Errorf("the budget has figures of the state %q, which work without a warm-up lacks: "+
					"remove them", s)
			case !judged && (!fresh || now[s] == nil):
				continue
			}
			c := Check{State: s, Figure: f, Tolerance: b.Tolerance[f]}
			if judged {
				c.Budget = &budget
			}
			if x, ok := now[s][f]; ok {
				c.Now = &x
			}
			if c.Verdict, err = b.verdict(&c, how); err != nil {
				return nil, err
			}
			switch c.Verdict {
			case Added, Lowered, Raised:
				e.Figures[s][f] = *c.Now
			case Violated, Tolerated, Improved:
				exact = false
			}
			r.Checks = append(r.Checks, c)
		}
	}
	switch {
	case fresh:
	case len(e.Blocks) > 0:
		explain(r, e, by, blocks)
	case !exact || how == UpdateNone:
		r.Notes = append(r.Notes, "The budget lists no blocks, so none are compared: --update lists them if no figure is "+
			"above its budget.")
	}
	if e.Version != "" && e.Version != version && !fresh {
		r.Notes = append(r.Notes, fmt.Sprintf("The budget was written by version %s, this is %s: a change of the simulation "+
			"may change figures.", e.Version, version))
	}
	if exact && how != UpdateNone {
		e.Version, e.Hash = version, w.Hash
		e.list(by, blocks)
	}
	return r, nil
}

// verdict judges one figure.
func (b *Baseline) verdict(c *Check, how Update) (Verdict, error) {
	switch {
	case c.Now == nil:
		return Violated, nil
	case c.Budget == nil:
		return Added, nil
	case *c.Now == *c.Budget:
		return Kept, nil
	case *c.Now < *c.Budget && how != UpdateNone:
		return Lowered, nil
	case *c.Now < *c.Budget:
		return Improved, nil
	case how == UpdateRaise:
		return Raised, nil
	}
	violated, err := b.violates(c.Figure, *c.Budget, *c.Now)
	if violated {
		return Violated, err
	}
	return Tolerated, err
}

// mostKinds bounds the kinds of blocks in the file: some 200 KiB.
const mostKinds = 2000

// list stores the kinds of blocks of the work, those with the most bytes.
func (b *Budget) list(by top.Grouping, blocks []top.Kind) {
	b.By, b.Above = by, 0
	if len(blocks) > mostKinds {
		b.Above = sum(&blocks[mostKinds]) + 1
	}
	b.Blocks = above(blocks, b.Above)
}

// sum returns the bytes of all allocations of a kind.
func sum(k *top.Kind) device.Size { return k.Size * device.Size(k.Count) }

// above returns the kinds with at least some bytes in sum.
func above(blocks []top.Kind, least device.Size) []top.Kind {
	return slices.DeleteFunc(slices.Clone(blocks), func(k top.Kind) bool { return sum(&k) < least })
}
