package caching

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
)

var (
	errSpan     = errors.New("want @FROM..TO, the marks at which it begins and ends")
	errNoMark   = errors.New("want a mark before or after the dots")
	errSameMark = errors.New("it begins and ends at the same mark")
)

// phaseKeys are the keys that can hold for a phase, because a call of the program can set and reset
// them.
var phaseKeys = []string{keyMaxSplit, "garbage_collection_threshold", keyDivisions, keyExpandable}

// phase is a part of a run with settings of its own. The zero value is no phase.
type phase struct {
	items    []string // each key:value
	from, to string   // the marks at which it begins and ends; "": at the start, never
}

// splitConf splits a string into the part that always holds and its phase. An item of a phase ends
// in @FROM..TO. All have the same phase, because PyTorch has one set of settings at a time.
func splitConf(conf string) (base string, p phase, err error) {
	var kept []string
	for _, item := range confItems(conf) {
		text, span, phased := strings.Cut(item, "@")
		if !phased {
			kept = append(kept, item)
			continue
		}
		from, to, err := parseSpan(span)
		key, _, _ := strings.Cut(text, ":")
		switch key = strings.TrimSpace(key); {
		case err != nil:
			return "", p, fmt.Errorf("%s: %w", strings.TrimSpace(item), err)
		case !slices.Contains(phaseKeys, key):
			return "", p, fmt.Errorf("%s: %q cannot change for a phase: want one of %s", strings.TrimSpace(item), key,
				strings.Join(phaseKeys, ", "))
		case len(p.items) > 0 && (from != p.from || to != p.to):
			return "", p, fmt.Errorf("%s: another phase than %s: want one phase", strings.TrimSpace(item), p)
		}
		p.items, p.from, p.to = append(p.items, strings.TrimSpace(text)), from, to
	}
	return strings.Join(kept, ","), p, nil
}

// confItems splits a string at the commas that are neither in brackets nor in quotes.
func confItems(conf string) (items []string) {
	depth, start := 0, 0
	for i := 0; i < len(conf); i++ {
		switch c := conf[i]; {
		case c == '"':
			quoted, err := strconv.QuotedPrefix(conf[i:])
			if err != nil { // the rest is one item, whose error names the quote
				return append(items, conf[start:])
			}
			i += len(quoted) - 1
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == ',' && depth <= 0:
			items = append(items, conf[start:i])
			start = i + 1
		}
	}
	return append(items, conf[start:])
}

// parseSpan reads FROM..TO, each the text of a mark, in quotes if it has a comma, a quote or two
// dots, or nothing.
func parseSpan(span string) (from, to string, err error) {
	from, rest, err := parseMark(span)
	if err != nil {
		return "", "", err
	}
	after, ok := strings.CutPrefix(rest, "..")
	if !ok {
		return "", "", errSpan
	}
	to, rest, err = parseMark(after)
	switch {
	case err != nil:
		return "", "", err
	case rest != "":
		return "", "", fmt.Errorf("%q after the mark %q: want a comma", rest, to)
	case from == "" && to == "":
		return "", "", errNoMark
	case from == to:
		return "", "", errSameMark
	}
	return from, to, nil
}

// parseMark reads the text of a mark up to two dots, and returns the rest.
func parseMark(text string) (mark, rest string, err error) {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, `"`) {
		quoted, err := strconv.QuotedPrefix(text)
		if err != nil {
			return "", "", fmt.Errorf("mark %s: want a closing quote", text)
		}
		mark, err = strconv.Unquote(quoted)
		return mark, strings.TrimSpace(text[len(quoted):]), err
	}
	n := strings.Index(text, "..")
	if n < 0 {
		n = len(text)
	}
	return strings.TrimSpace(text[:n]), text[n:], nil
}

// String returns the phase as it is written behind an item.
func (p phase) String() string { return Phase(p.from, p.to) }

// Phase returns the text that limits an item of Config.Conf to the phase between two marks.
func Phase(from, to string) string { return "@" + markText(from) + ".." + markText(to) }

// markText returns the text of a mark, quoted if need be.
func markText(mark string) string {
	if strings.ContainsAny(mark, `,"[]@`) || strings.Contains(mark, "..") || strings.TrimSpace(mark) != mark {
		return strconv.Quote(mark)
	}
	return mark
}

// planned has the settings of a run and of its phase.
type planned struct {
	base   settings
	phase  phase
	active bool // the phase has begun and not ended
}

// present returns the settings that hold now: items of an active phase replace those with the same
// key.
func (p planned) present(rules string) (settings, error) {
	if !p.active {
		return p.base, nil
	}
	s := p.base
	text := strings.Join(p.phase.items, ",")
	if strings.Contains(text, keyDivisions) {
		s.divisions = [intervals]device.Size{}
	}
	s, err := s.read(text, rules)
	if err != nil {
		return s, fmt.Errorf("%s: %w", p.phase, err)
	}
	return s, nil
}

// Marks implements [setting.PhasedConfig].
func (c Config) Marks() (marks []string) {
	_, p, _ := splitConf(c.Conf) // WithDefaults has returned its error
	for _, m := range []string{p.from, p.to} {
		if m != "" {
			marks = append(marks, m)
		}
	}
	return marks
}

var _ power.Informed = (*Allocator)(nil)

// Has reports the powers: marks matter to a phase only.
func (a *Allocator) Has(p power.Power) bool {
	return power.Implements(a, p) && (p != power.PowerInformed || len(a.plan.phase.items) > 0)
}

// Mark implements [power.Informed]: it begins or ends the phase.
func (a *Allocator) Mark(text string) {
	p := a.plan
	switch text {
	case p.phase.from:
		p.active = true
	case p.phase.to:
		p.active = false
	}
	if p.active == a.plan.active || text == "" || a.front.Closed() {
		return
	}
	// The settings of the phase were checked as the allocator was built. Only a change of the program
	// can conflict with them; then they stay as they are.
	if set, err := p.present(a.cfg.Rules); err == nil {
		a.apply(p, set)
	}
}

// calls returns the settings at the start, and the calls of the program that begin and end the
// phase.
func (p phase) calls(base string) (start string, calls []setting.Call) {
	if len(p.items) == 0 {
		return base, nil
	}
	var others []string
	reset := map[string]bool{}
	for _, item := range p.items {
		key, _, _ := strings.Cut(item, ":")
		reset[strings.TrimSpace(key)] = true
	}
	named := false
	for _, item := range confItems(base) {
		key, _, _ := strings.Cut(item, ":")
		key = strings.TrimSpace(key)
		named = named || key == keyExpandable
		if item != "" && !reset[key] {
			others = append(others, strings.TrimSpace(item))
		}
	}
	during, after := strings.Join(append(others, p.items...), ","), base
	if reset[keyExpandable] && !named {
		// A call does not reset it.
		after = strings.TrimPrefix(after+","+keyExpandable+":False", ",")
	}
	start = base
	if p.from == "" {
		start = during
	} else {
		calls = append(calls, setting.Call{Mark: p.from, Conf: during})
	}
	if p.to != "" {
		calls = append(calls, setting.Call{Mark: p.to, Conf: after})
	}
	return start, calls
}
