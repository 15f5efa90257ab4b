package bugs

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/props/planted"
)

// file is one file of bugs.
type file struct {
	name     string
	settings map[string]Setting
	bugs     []Bug
	edits    []*edit
}

// edit is one change of a function.
type edit struct {
	line     int // of the file of bugs
	path     string
	function string
	bugs     []planted.ID
	hunk     []string // lines with their first character
}

// reader is the state of parsing one file.
type reader struct {
	file
	id    planted.ID // of the bug whose records and edits follow
	doc   string
	calls bool // whether calls may follow
	hunk  bool // whether lines of an edit may follow
	used  map[string]bool
}

// parse parses the text of a file of bugs. Its error begins with the line.
func parse(text string) (*file, error) {
	p := reader{file: file{settings: map[string]Setting{}}, used: map[string]bool{}}
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if err := p.line(i+1, line); err != nil {
			return nil, fmt.Errorf("%d: %w", i+1, err)
		}
	}
	for name := range p.settings {
		if !p.used[name] {
			return nil, fmt.Errorf("1: setting %q is used by no bug", name)
		}
	}
	for _, e := range p.edits {
		if err := p.checkEdit(e); err != nil {
			return nil, fmt.Errorf("%d: %w", e.line, err)
		}
	}
	return &p.file, nil
}

func (p *reader) line(number int, line string) error {
	if p.hunk && line != "" && strings.ContainsRune(" +-", rune(line[0])) {
		e := p.edits[len(p.edits)-1]
		e.hunk = append(e.hunk, line)
		return nil
	}
	p.hunk = false
	if call, ok := strings.CutPrefix(line, "    "); ok && p.calls {
		b := &p.bugs[len(p.bugs)-1]
		if b.Minimal != "" {
			call = "\n" + call
		}
		b.Minimal += call
		return nil
	}
	p.calls = false
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "", "#":
		if word == "" && rest != "" {
			return fmt.Errorf("indented line %q: want calls after a record or context in an edit", line)
		}
		return nil
	case "setting":
		return p.setting(rest)
	case "bug":
		return p.bug(rest)
	case "in":
		return p.record(rest)
	case "edit":
		path, function, ok := strings.Cut(rest, " ")
		if !ok || p.id == planted.None {
			return errors.New("want edit FILE FUNCTION after a bug")
		}
		p.edits = append(p.edits, &edit{line: number, path: path, function: function})
		p.hunk = true
		return nil
	}
	return fmt.Errorf("%q: want setting, bug, in, edit or #", word)
}

// setting parses "NAME: STRATEGY CONFIG on DEVICE".
func (p *reader) setting(line string) error {
	name, rest, named := strings.Cut(line, ": ")
	strategy, rest, spaced := strings.Cut(rest, " ")
	config, device, ok := strings.Cut(rest, " on ")
	if !named || !spaced || !ok || !json.Valid([]byte(config)) || !json.Valid([]byte(device)) {
		return errors.New("want setting NAME: STRATEGY JSON on JSON")
	}
	if _, again := p.settings[name]; again {
		return fmt.Errorf("setting %q is there already", name)
	}
	p.settings[name] = Setting{strategy, config, device}
	return nil
}

// name is the form of the name of a bug.
var name = regexp.MustCompile(`^[a-z]+/[a-z-]+$`)

// bug parses "ID: DOC".
func (p *reader) bug(line string) error {
	id, doc, ok := strings.Cut(line, ": ")
	if !ok || !name.MatchString(id) || doc == "" {
		return errors.New("want bug PACKAGE/NAME: DESCRIPTION")
	}
	p.id, p.doc = planted.ID(id), doc
	return nil
}

// record parses "SETTING breaks NUMBER... [or NUMBER...] [by JUDGE] [refusing CALL]".
func (p *reader) record(line string) error {
	words := strings.Fields(line)
	if p.id == planted.None || len(words) == 0 {
		return errors.New("want in SETTING after a bug")
	}
	setting, ok := p.settings[words[0]]
	if !ok {
		return fmt.Errorf("unknown setting %q", words[0])
	}
	p.used[words[0]] = true
	b := Bug{ID: p.id, Setting: setting, Doc: p.doc}
	words = words[1:]
	b.Breaks, words = numbers("breaks", words)
	if len(b.Breaks) == 0 {
		return errors.New("want breaks and invariants after the setting")
	}
	if len(words) > 1 && words[0] == "by" {
		judges := []string{"calls", "faults", "heap", "relations", "callers", "logs", "misled", "trained"}
		judge := slices.Index(judges, words[1])
		if judge < 1 {
			return fmt.Errorf("judge %q: want faults, heap, relations, callers, logs, misled or trained", words[1])
		}
		b.Judge, words = Judge(judge), words[2:]
	}
	if len(words) > 1 && words[0] == "refusing" {
		nth, err := strconv.ParseUint(words[1], 10, 64)
		if err != nil || nth == 0 {
			return fmt.Errorf("refusing %q: want the number of a device call", words[1])
		}
		b.Nth, words = nth, words[2:]
	}
	if len(words) > 0 {
		return fmt.Errorf("%q: want by JUDGE, refusing CALL, in this order", words[0])
	}
	p.bugs = append(p.bugs, b)
	p.calls = true
	return nil
}

// number is the form of the number of an invariant.
var number = regexp.MustCompile(`^[A-Z]\d+$`)

// numbers takes a keyword and the numbers of invariants after it.
func numbers(keyword string, words []string) (all, rest []string) {
	if len(words) == 0 || words[0] != keyword {
		return nil, words
	}
	n := 1
	for n < len(words) && number.MatchString(words[n]) {
		n++
	}
	return words[1:n], words[n:]
}

// condition is the switch of a bug in a line that is put in.
var condition = regexp.MustCompile(`planted\.Is\("([^"]*)"\)`)

// checkEdit finds the bugs of an edit, which are bugs of the same file.
func (p *reader) checkEdit(e *edit) error {
	for _, line := range e.hunk {
		for _, m := range condition.FindAllStringSubmatch(line, -1) {
			id := planted.ID(m[1])
			if line[0] != '+' {
				return fmt.Errorf("%s stands in a line that is not put in", id)
			}
			if !slices.ContainsFunc(p.bugs, func(b Bug) bool { return b.ID == id }) {
				return fmt.Errorf("%s is no bug of this file", id)
			}
			e.bugs = append(e.bugs, id)
		}
	}
	if len(e.bugs) == 0 {
		return errors.New("no line that is put in has planted.Is")
	}
	return nil
}
