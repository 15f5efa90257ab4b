package top

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/provenance"
)

// Schema is the schema of a [Report] in JSON.
const Schema = "vramyard-top/1"

// Grouping is a way to group blocks.
type Grouping string

// The groupings.
const (
	ByCallSite Grouping = "call site"
	ByTag      Grouping = "tag"
	BySize     Grouping = "size"
)

// Report is the memory of a program by holder.
type Report struct {
	Schema     string           `json:"schema"`            // the constant Schema
	Provenance provenance.Build `json:"provenance"`        // the program, set by the caller
	Trace      string           `json:"trace"`             // name
	Hash       string           `json:"trace_sha256"`      // of the file
	Events     int              `json:"events"`            // of the trace
	History    bool             `json:"history"`           // the file records allocations; false: only one state
	By         Grouping         `json:"grouped_by"`        // kind of Holders
	Peak       Moment           `json:"peak"`              // the peak; without history the recorded state
	Failure    *Moment          `json:"failure,omitempty"` // the last refused request; absent: none
	// stacks reduced to their call site to limit memory
	Cut int `json:"cut_stacks,omitempty"`
}

// Moment is the live memory after an event.
type Moment struct {
	Event      int         `json:"event"`                   // index; -1: nothing is ever live
	Bytes      device.Size `json:"live_bytes"`              // requested bytes of live blocks
	Blocks     int         `json:"block_count"`             // live blocks
	Asked      device.Size `json:"asked_bytes,omitempty"`   // size of the refused request, which is not live
	AskedBy    string      `json:"asked_by,omitempty"`      // tag of the refused request
	Refusals   int         `json:"refused_count,omitempty"` // refused requests so far
	Categories []Holder    `json:"categories"`              // largest first
	Holders    []Holder    `json:"holders"`                 // largest first
	Stacks     []Stack     `json:"stacks"`                  // largest first
}

// Share is the memory of a group of blocks.
type Share struct {
	Name   string      `json:"name"`        // of the group
	Bytes  device.Size `json:"bytes"`       // requested bytes
	Blocks int         `json:"block_count"` // number of blocks
}

func (s *Share) add(n device.Size) {
	s.Bytes += n
	s.Blocks++
}

// Holder is the memory of one call site, tag or size.
type Holder struct {
	Share
	Category Category `json:"category"` // of most of its bytes
}

// Stack is the memory of one stack.
type Stack struct {
	Lines    []string    `json:"lines"`       // innermost first
	Bytes    device.Size `json:"bytes"`       // requested bytes
	Blocks   int         `json:"block_count"` // number of blocks
	Category Category    `json:"category"`    // purpose
}

// noName is the group of blocks without a stack or a tag.
const noName = "(not recorded)"

// grouper groups blocks, with memoised stacks.
type grouper struct {
	by     Grouping
	stacks Stacks
	known  map[uint32]*kind // by stack
	texts  map[string]*kind // by tag or size
	held   int              // bytes of kept lines
	cut    int              // stacks reduced to their call site
}

// Limits: stacks may share lines, so a small file can expand to any size.
const (
	mostHeld  = 128 << 20 // bytes of lines beyond which only call sites are kept
	lineBytes = 128       // overhead of a line, in its list and in the flame graph
	mostParts = 256       // lines of a tag
)

// kind is the common properties of a group of blocks.
type kind struct {
	lines    []string
	text     string // category and lines
	site     string
	category Category
}

func (k *kind) settled() *kind {
	k.text = string(k.category) + "\n" + strings.Join(k.lines, "\n")
	return k
}

func newGrouper(by Grouping, stacks Stacks) *grouper {
	return &grouper{by: by, stacks: stacks, known: map[uint32]*kind{}, texts: map[string]*kind{}}
}

func (g *grouper) kindOf(b *block) *kind {
	switch g.by {
	case ByCallSite:
		return g.ofStack(g.stacks.Stack(b.id))
	case ByTag:
		return g.named(b.tag, ofTag(b.tag), ":")
	}
	name := "blocks of " + b.size.String()
	if strings.Contains(name, ".") { // a rounded value
		name = fmt.Sprintf("%s (%d bytes)", name, uint64(b.size))
	}
	return g.named(name, Unknown, "")
}

// named returns the kind of blocks with the same text, whose parts are its lines.
func (g *grouper) named(text string, c Category, part string) *kind {
	k := g.texts[text]
	if k == nil {
		k = &kind{site: cmp.Or(text, noName), category: c}
		if k.lines = []string{k.site}; part != "" {
			k.lines = strings.SplitN(k.site, part, mostParts)
			slices.Reverse(k.lines)
		}
		g.texts[text] = k.settled()
	}
	return k
}

func (g *grouper) ofStack(stack uint32) *kind {
	if stack == 0 {
		return g.named("", Unknown, "")
	}
	k := g.known[stack]
	if k == nil {
		k = &kind{}
		k.lines, k.site = g.stacks.Lines(stack)
		for _, line := range k.lines {
			g.held += 2*len(line) + lineBytes
		}
		if g.held > mostHeld && len(k.lines) > 1 {
			k.lines = []string{k.site}
			g.cut++
		}
		k.category = ofStack(func(yield func(string, string) bool) {
			for frame := range g.stacks.Frames(stack) {
				if !yield(g.stacks.Frame(frame)) {
					return
				}
			}
		})
		g.known[stack] = k.settled()
	}
	return k
}

func (g *grouper) moment(event int, blocks []block) Moment {
	m := Moment{Event: event, Blocks: len(blocks), Categories: []Holder{}, Holders: []Holder{}, Stacks: []Stack{}}
	categories := map[Category]*Share{}
	type holding struct {
		name     string
		category Category
	}
	holders := map[holding]*Share{}
	stacks := map[string]*Stack{} // by lines
	for i := range blocks {
		b := &blocks[i]
		m.Bytes += b.size
		k := g.kindOf(b)
		at(categories, k.category).add(b.size)
		at(holders, holding{k.site, k.category}).add(b.size)
		s := at(stacks, k.text)
		s.Lines, s.Category = k.lines, k.category
		s.Bytes += b.size
		s.Blocks++
	}
	for c, s := range categories {
		s.Name = string(c)
		m.Categories = append(m.Categories, Holder{*s, c})
	}
	for h, s := range holders {
		s.Name = h.name
		m.Holders = append(m.Holders, Holder{*s, h.category})
	}
	for _, s := range stacks {
		m.Stacks = append(m.Stacks, *s)
	}
	slices.SortFunc(m.Categories, compareHolders)
	slices.SortFunc(m.Holders, compareHolders)
	slices.SortFunc(m.Stacks, func(a, b Stack) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), slices.Compare(a.Lines, b.Lines), cmp.Compare(a.Category, b.Category))
	})
	return m
}

// at returns the value of a key, creating it if missing.
func at[K comparable, V any](m map[K]*V, key K) *V {
	v := m[key]
	if v == nil {
		v = new(V)
		m[key] = v
	}
	return v
}

func compareHolders(a, b Holder) int {
	return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Blocks, a.Blocks), cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Category, b.Category))
}

// Categorized reports whether the category of any block is known.
func (r *Report) Categorized() bool {
	known := func(m *Moment) bool {
		return slices.ContainsFunc(m.Categories, func(h Holder) bool { return h.Category != Unknown })
	}
	return known(&r.Peak) || r.Failure != nil && known(r.Failure)
}

// Notes returns limits of the report as sentences.
func (r *Report) Notes() []string {
	var notes []string
	if !r.History {
		notes = append(notes, "The file has no history: this is the memory when it was written, not the peak.")
	}
	switch {
	case r.By == BySize:
		notes = append(notes, "Less than half of the bytes have a stack or a tag, so blocks are grouped by size. "+
			`torch.cuda.memory._record_memory_history(stacks="python") records stacks.`)
	case !r.Categorized():
		notes = append(notes, fmt.Sprintf("No category, such as weights or activations, is known from the %ss.",
			map[Grouping]string{ByCallSite: "stack", ByTag: "tag"}[r.By]))
	case r.By == ByTag:
		notes = append(notes, "Categories are what the tags begin with.")
	default:
		notes = append(notes, "Categories are derived from the functions of the stacks: a temporary of a forward function "+
			"counts as an activation, and gradients of weights and of activations are not distinguished.")
	}
	if r.Cut > 0 {
		notes = append(notes, fmt.Sprintf("%d stacks are shown by their call site alone: the others use all the memory "+
			"for stacks.", r.Cut))
	}
	for _, h := range r.Peak.Holders {
		switch {
		case h.Name != noName:
		case r.By == ByCallSite:
			notes = append(notes, fmt.Sprintf("%d of %d blocks have no stack, such as those from before the recording.",
				h.Blocks, r.Peak.Blocks))
		default:
			notes = append(notes, fmt.Sprintf("%d of %d blocks have no tag.", h.Blocks, r.Peak.Blocks))
		}
	}
	return notes
}

// WriteFolded writes the stacks in the folded format of flame graph tools: lines from outermost to
// innermost, separated by semicolons, and bytes.
func (m *Moment) WriteFolded(w io.Writer) error {
	clean := strings.NewReplacer(";", ",", "\n", " ", "\r", " ")
	for _, s := range m.Stacks {
		lines := make([]string, len(s.Lines))
		for i, l := range s.Lines {
			lines[len(lines)-1-i] = clean.Replace(l)
		}
		if _, err := fmt.Fprintf(w, "%s %d\n", strings.Join(lines, ";"), uint64(s.Bytes)); err != nil {
			return err
		}
	}
	return nil
}
