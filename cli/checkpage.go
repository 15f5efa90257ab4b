package cli

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/show/page"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/check"
)

// page returns the page of a run in which every invariant held.
func (f *checkFlags) page(sheet report.Sheet) *page.Report {
	var names []string
	for n := range props.Numbers {
		names = append(names, n.String()+" "+n.Name())
	}
	return &page.Report{Kind: "check", Title: "Invariants proved", Sheets: []report.Sheet{sheet}, Facts: []page.Fact{
		{Name: "seed of the first sequence", Value: strconv.FormatInt(f.seed, 10)},
		{Name: "sequences for each subject", Value: strconv.Itoa(f.tests)},
		{Name: "calls in a sequence", Value: strconv.Itoa(f.ops)},
		{Name: "device calls refused in turn", Value: yesNo(f.faults)},
		{Name: "memory filled and compared", Value: yesNo(f.contents || f.card != nil)},
		{Name: "invariants", Value: strings.Join(names, ", ")},
	}}
}

// withFailures adds the failures to the page, if there are any.
func withFailures(p *page.Report, broken []*brokenInvariant) *page.Report {
	var data []brokenData
	for _, b := range broken {
		p.Title = "An invariant is broken"
		p.Texts = append(p.Texts, page.Text{Title: b.Subject + ", step by step", Body: b.text(traceName(b.Failure))})
		data = append(data, b.data())
	}
	p.More = map[string]any{"check": data}
	return p
}

func yesNo(done bool) string {
	if done {
		return "yes"
	}
	return "no"
}

// brokenInvariant is a failure with its report.
type brokenInvariant struct {
	*props.Failure
	story    *check.Story
	strategy string // its name on the command line
	again    string // the command that repeats it by its seed
}

// text returns the report as text, whose trace is in a file.
func (b *brokenInvariant) text(path string) string {
	var t strings.Builder
	fmt.Fprintf(&t, "\n%v\n", b.Failure)
	_ = b.story.WriteText(&t) // a Builder returns no error
	if b.Violation.Stack != nil {
		fmt.Fprintf(&t, "\n%s", b.Violation.Stack)
	}
	fmt.Fprintf(&t, "\ntrace: %s\nagain: %s\n", path, strings.Join(b.commands(path), "\n       "))
	return t.String()
}

// commands returns the commands that repeat it. A trace does not contain the behavior of a card.
func (b *brokenInvariant) commands(path string) []string {
	if b.Violation.Number == props.ICard {
		return []string{b.again}
	}
	return []string{b.replay(path), b.again}
}

// replay returns the command that repeats the failure by its trace.
func (b *brokenInvariant) replay(path string) string {
	return "vramyard replay --check --strategy " + report.ShellWord(b.strategy) + " " + report.ShellWord(path)
}

// brokenData is a broken invariant in the form of the page's script.
type brokenData struct {
	Subject   string       `json:"subject"`             // name
	Number    string       `json:"number"`              // of the invariant
	Name      string       `json:"name"`                // of the invariant
	Detail    string       `json:"detail"`              // the violation
	Addresses []uint64     `json:"addresses"`           // that the detail names
	Seed      int64        `json:"seed"`                // of the sequence
	Generated int          `json:"generated_count"`     // calls of the sequence as it was found
	Shrunk    int          `json:"shrunk_count"`        // calls after shrinking
	Refused   uint64       `json:"refused_device_call"` // refused by the plan of faults; 0: none
	Again     []string     `json:"again"`               // commands that repeat it
	Steps     []brokenStep `json:"steps"`               // the invariant broke in the last
	LeftOut   int          `json:"left_out_count"`      // steps before them
}

// brokenStep is one step towards the failure.
type brokenStep struct {
	Call    string       `json:"call"`    // as a line of a trace has it
	Answer  string       `json:"answer"`  // of the strategy; empty if it gave none
	Device  []string     `json:"device"`  // its calls with their answers
	Trouble string       `json:"trouble"` // error while the strategy was inspected; empty for none
	Regions []stepRegion `json:"regions"` // afterwards
	// Chunks are its chunks afterwards: region, offset, size, requested bytes, state, class, pool, and
	// the number of equal chunks that follow it.
	Chunks  [][8]int64 `json:"chunks"`
	LeftOut int        `json:"left_out_count"` // chunks that are not in the list, at least
}

// stepRegion is the part of a region that a walk shows.
type stepRegion struct {
	Addr device.Addr `json:"addr"` // first byte
	Size device.Size `json:"size"` // bytes up to the end of its last chunk
}

// A page shows the last steps of a failure and some chunks of each. The text has all of them.
const (
	mostSteps  = 200
	mostChunks = 200
)

// addresses are addresses in a sentence.
var addresses = regexp.MustCompile(`0x[0-9a-f]{4,16}`)

func (b *brokenInvariant) data() brokenData {
	v := b.story.Violation
	d := brokenData{
		Subject: b.Subject, Number: v.Number.String(), Name: v.Number.Name(), Detail: v.Detail,
		Seed: b.Seed, Generated: b.Operations, Shrunk: len(b.Sequence), Refused: b.Plan.Nth,
		Again: b.commands(traceName(b.Failure)),
	}
	steps := b.story.Steps
	for _, text := range addresses.FindAllString(d.Detail, -1) {
		if a, err := strconv.ParseUint(text, 0, 64); err == nil {
			d.Addresses = append(d.Addresses, a)
		}
	}
	d.LeftOut = max(len(steps)-mostSteps, 0)
	for _, s := range steps[d.LeftOut:] {
		d.Steps = append(d.Steps, brokenStepOf(s))
	}
	return d
}

func brokenStepOf(s check.Step) brokenStep {
	b := brokenStep{Call: s.Call, Answer: s.Answer, Device: s.Device, Trouble: s.Trouble}
	for i, r := range s.Rows {
		if i >= mostChunks {
			b.LeftOut += 1 + r.More
			continue
		}
		if n := len(b.Regions); n == 0 || b.Regions[n-1].Addr != r.Region {
			b.Regions = append(b.Regions, stepRegion{Addr: r.Region})
		}
		last := &b.Regions[len(b.Regions)-1]
		last.Size = max(last.Size, r.Addr.Sub(r.Region)+r.Size*device.Size(1+r.More))
		b.Chunks = append(b.Chunks, chunkNumbers(len(b.Regions)-1, r))
	}
	if s.Cut {
		b.LeftOut++
	}
	return b
}

// chunkNumbers returns a chunk as the numbers of [brokenStep.Chunks].
func chunkNumbers(region int, r check.Row) [8]int64 {
	return [8]int64{
		int64(region), int64(r.Addr - r.Region), int64(r.Size), int64(r.Requested), int64(r.State), int64(r.Class),
		int64(r.Pool), int64(r.More),
	}
}
