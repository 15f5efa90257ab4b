package setting

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/nearest"
	"github.com/vramyard/vramyard/internal/strictjson"
)

// Preset is a named configuration of a strategy. The preset with the empty name belongs to the bare
// name of the strategy; a strategy without one has no bare form.
type Preset struct {
	Name string // the part after the colon: "growth" in bfc:growth
	Doc  string // one line
	JSON string // fields of the strategy's Config that differ from its zero value
	In   Lists  // default lists that contain it; zero: every list for the first preset, none for the others
}

// Lists is a set of default lists: the strategies that a command takes if none are named.
type Lists uint8

// The default lists.
const (
	Compared  Lists = 1 << iota // comparisons, and grids of settings that do not name the strategy
	Remat                       // rematerialization under a memory budget
	Timed                       // benchmarks
	Yardstick                   // first among the timed ones: the others are shown as ratios to it
	Unlisted                    // no list, for a first preset

	everyList = Compared | Remat | Timed
)

// Spec is one entry of a [Catalogue]: a strategy, how it is configured and built.
type Spec struct {
	Name    string   // lower case, one word
	Doc     string   // one line
	Presets []Preset // in the order in which they are shown
	Knobs   []Knob   // the fields of the Config

	// Given parses the text after the colon of a name that is not a preset, such as the path of a
	// plug-in; nil if the strategy has no such form. It returns fields of the Config in JSON.
	Given func(text string) (fields string, err error)

	// Known are other names for the strategy, such as the name of its framework. Lookup does not
	// accept them, because each setup has one name in results; its error suggests the strategy.
	Known []string

	// Originals are programs that the strategy reimplements, each with its own Config. The
	// preset of an original's name builds it, and so does every configuration whose field "compat"
	// has that name.
	Originals []Spec

	// Semantics is the version of the placements, from 1. It is raised when equal calls over equal
	// answers of the device may get other addresses, sizes or errors, make other device calls, or
	// leave other counters or free chunks, with the same Config. Stored results of another version
	// are not used again. Each of the Originals has its own.
	Semantics int

	setup func(s Spec, name string, preset, override json.RawMessage) (Setup, error)
}

// KnownAs returns the entry with [Spec.Known].
func (s Spec) KnownAs(names ...string) Spec {
	s.Known = names
	return s
}

// WithSemantics returns the entry with version n of its placements; see [Spec.Semantics]. An entry
// without it has version 1.
func (s Spec) WithSemantics(n int) Spec {
	s.Semantics = n
	return s
}

// WithOriginals returns the entry with [Spec.Originals]. An original has the name and the Doc of
// the preset that builds it, such as "buddy:xdl". The preset sets the field "compat" to the part
// after the colon. The Config of an original has that field too, with that one value.
func (s Spec) WithOriginals(originals ...Spec) Spec {
	for i := range originals {
		for _, p := range s.Presets {
			if p.Name == originals[i].preset() {
				originals[i].Doc = p.Doc
			}
		}
	}
	s.Originals = originals
	return s
}

// preset returns the part of an original's name that follows the colon.
func (s Spec) preset() string {
	_, preset, _ := strings.Cut(s.Name, ":")
	return preset
}

// original returns the original that a configuration names, and whether it names one. It leaves
// other mistakes in the configuration to the strict decoder.
func (s Spec) original(name string, layers ...json.RawMessage) (original Spec, ok bool, err error) {
	var c struct{ Compat string }
	for _, layer := range layers {
		_ = json.Unmarshal(layer, &c)
	}
	var names []string
	for _, o := range s.Originals {
		if o.preset() == c.Compat {
			return o, true, nil
		}
		names = append(names, o.preset())
	}
	if c.Compat != "" && len(names) > 0 {
		return Spec{}, false, fmt.Errorf("configuration of %s: compat %q: %s", name, c.Compat, nearest.Want(c.Compat, names))
	}
	return Spec{}, false, nil
}

// Knob describes one field of a strategy's Config by its tags: json the name, doc the meaning, grid
// the values worth trying.
type Knob struct {
	Name    string   // key in JSON
	Type    string   // type of the value: size, number, text, yes/no, list, object
	Doc     string   // meaning
	Default string   // value, in JSON, in the zero Config with its defaults filled in; "" where that is no legal Config
	Grid    []string // values worth trying, in JSON; empty for a field that a search leaves alone
}

// DefaultedConfig is a configuration that can fill in its defaults and validate itself.
type DefaultedConfig[C any] interface {
	// WithDefaults returns the configuration with every default filled in, or an error
	// that names strategy and field.
	WithDefaults() (C, error)
}

// CapacityConfig is a configuration that can be fitted to a device.
type CapacityConfig[C any] interface {
	// ForCapacity returns the configuration for a device of n bytes: a strategy with its own limit
	// gets the limit n.
	ForCapacity(n device.Size) C
}

// PreallocatingConfig is a configuration that may take its whole limit at once.
type PreallocatingConfig interface {
	// Preallocates reports whether the strategy takes its whole limit with the first request for a
	// byte, so that its reserved bytes are unrelated to the needed bytes.
	Preallocates() bool
}

// BaselineConfig is a configuration of a baseline: a strategy for comparison, not for use.
type BaselineConfig interface {
	// Baseline reports whether the strategy is a baseline.
	Baseline() bool
}

// ForeignConfig is a configuration of a strategy whose placements are decided by code outside this
// program, such as a shared object.
type ForeignConfig interface {
	// Semantics returns a text that changes with that code, such as its hash. It returns "" if it
	// cannot see all of the code, so that results must not be stored.
	Semantics() string
}

// SpecOf returns the catalogue entry of a strategy whose constructor is build. C is its
// Config: a struct that encodes to JSON and whose zero value is useful.
func SpecOf[C any, S alloc.Strategy](name, doc string, build func(device.Source, C) (S, error),
	presets ...Preset) Spec {
	return Spec{
		Name:      name,
		Doc:       doc,
		Presets:   presets,
		Knobs:     knobsOf[C](),
		Semantics: 1,
		setup: func(s Spec, name string, preset, override json.RawMessage) (Setup, error) {
			var c C
			for _, layer := range []json.RawMessage{preset, override} {
				if err := strictjson.Decode(layer, &c); err != nil {
					return Setup{}, fmt.Errorf("configuration of %s: %w", name, err)
				}
			}
			if d, ok := any(c).(DefaultedConfig[C]); ok {
				var err error
				if c, err = d.WithDefaults(); err != nil {
					return Setup{}, err
				}
			}
			setup := SetupOf(name, build, c)
			setup.Semantics = s.semantics(c)
			return setup, nil
		},
	}
}

// semantics returns [Setup.Semantics] of a configuration.
func (s Spec) semantics(config any) string {
	version := strconv.Itoa(s.Semantics)
	f, ok := config.(ForeignConfig)
	if !ok {
		return version
	}
	foreign := f.Semantics()
	if foreign == "" {
		return ""
	}
	return version + "," + foreign
}

// Setup is one strategy with one configuration, ready to be built any number of times.
type Setup struct {
	Name         string      // name and preset: bfc:growth
	Config       any         // the strategy's Config, defaults filled in; encodes to JSON
	Promises     promise.Set // promises of the configuration
	Preallocates bool        // reserves its whole limit at once, so reserved bytes are independent of the demand
	Baseline     bool        // others are compared with it; no verdict names it the winner
	// Forecast, if not nil, is passed to each strategy that is built, if it is a [power.Planner].
	Forecast power.Forecast
	// Semantics is the version of the placements: setups of equal name, configuration, forecast and
	// semantics make the same decisions, in any build of the program. A stored result is valid as
	// long as they are equal. It is [Spec.Semantics] as text. For a [ForeignConfig] its text
	// follows after a comma, for shards the strategy of each with its version, such as "1,tlsf=3".
	// It is "" for a setup that no [Spec] made, and if foreign code cannot be seen: results must
	// not be stored.
	Semantics string

	build       func(device.Source) (alloc.Strategy, error)
	forCapacity func(device.Size) Setup
	reduced     func(Demand) Setup
	withLocks   func() Setup        // nil for a strategy without locks of its own
	withShare   func(float64) Setup // nil for a configuration that is no [ShareConfig]
}

// New builds the strategy over src. It fails if the configuration is invalid, or if the
// strategy takes memory when it is built and the device refuses.
func (s Setup) New(src device.Source) (alloc.Strategy, error) {
	a, err := s.build(src)
	if err == nil && s.Forecast != nil {
		_ = power.Plan(a, s.Forecast) // if it has the power
	}
	return a, err
}

// ForCapacity returns the setup for a device of n bytes, under the same name and with the same
// forecast and semantics. A strategy with its own limit gets the limit n; any other setup is
// returned unchanged.
func (s Setup) ForCapacity(n device.Size) Setup { return s.like(s.forCapacity(n)) }

// like returns a setup of the same strategy with the fields of s that no configuration determines.
func (s Setup) like(other Setup) Setup {
	other.Name, other.Forecast, other.Semantics = s.Name, s.Forecast, s.Semantics
	return other
}

// SetupOf returns the setup of a strategy whose constructor is build. C is its Config, with
// defaults filled in. Catalogues make setups by [SpecOf]; this one has no [Setup.Semantics].
func SetupOf[C any, S alloc.Strategy](name string, build func(device.Source, C) (S, error), c C) Setup {
	s := Setup{Name: name, Config: c}
	s.build = func(src device.Source) (alloc.Strategy, error) {
		a, err := build(src, c)
		if err != nil {
			return nil, err // not a, which would be a typed nil
		}
		return wrap.Exclusive(name, a), nil
	}
	if p, ok := any(c).(promise.Promiser); ok {
		s.Promises = p.Promises()
	}
	if p, ok := any(c).(PreallocatingConfig); ok {
		s.Preallocates = p.Preallocates()
	}
	if b, ok := any(c).(BaselineConfig); ok {
		s.Baseline = b.Baseline()
	}
	s.forCapacity = func(n device.Size) Setup {
		if f, ok := any(c).(CapacityConfig[C]); ok {
			return SetupOf(name, build, f.ForCapacity(n))
		}
		return s
	}
	if l, ok := any(c).(LockingConfig[C]); ok {
		s.withLocks = func() Setup { return SetupOf(name, build, l.WithLocks()) }
	}
	if f, ok := any(c).(ShareConfig[C]); ok {
		s.withShare = func(share float64) Setup { return SetupOf(name, build, f.WithShare(share)) }
	}
	s.reduced = func(d Demand) Setup {
		if r, ok := any(c).(ReducedConfig[C]); ok {
			return SetupOf(name, build, r.Reduced(d))
		}
		return s
	}
	return s
}

// Catalogue is a list of strategies. The order is the order in which they are shown.
type Catalogue []Spec

// Lookup returns the setup for a name such as "bfc" or "bfc:growth". The fields of override, a JSON
// object or nothing, replace the preset's. It fails for an unknown strategy or preset, malformed
// JSON, an unknown field, and values that a [DefaultedConfig] rejects. The text after the colon may
// also be in the form of [Spec.Given]. The bare name of a strategy without a bare preset starts
// from the zero Config.
func (c Catalogue) Lookup(name string, override json.RawMessage) (Setup, error) {
	base, preset, hasPreset := strings.Cut(name, ":")
	i := slices.IndexFunc(c, func(s Spec) bool { return s.Name == base })
	if i < 0 {
		return Setup{}, fmt.Errorf("unknown strategy %q: %s", base, c.wanted(name, base))
	}
	spec := c[i]
	j := slices.IndexFunc(spec.Presets, func(p Preset) bool { return p.Name == preset })
	if j < 0 && hasPreset && spec.Given != nil {
		fields, err := spec.Given(preset)
		if err != nil {
			return Setup{}, err
		}
		return spec.setup(spec, name, json.RawMessage(fields), override)
	}
	if j < 0 && hasPreset {
		return Setup{}, fmt.Errorf("unknown preset %q of %s: %s", preset, base, spec.wanted(name, preset))
	}
	var fields json.RawMessage
	if j >= 0 {
		fields = json.RawMessage(spec.Presets[j].JSON)
	}
	original, isOriginal, err := spec.original(name, fields, override)
	if err != nil {
		return Setup{}, err
	}
	if isOriginal {
		if preset == "" {
			fields = nil // already those of the strategy
		}
		spec = original
	}
	return spec.setup(spec, strings.TrimSuffix(name, ":"), fields, override)
}

// wanted returns the suggestion for an unknown strategy: the strategy that is known by that name;
// else the nearest name, or the one whose other name is nearest, if there is one; and every
// strategy.
func (c Catalogue) wanted(name, base string) string {
	var known []string
	of := map[string]Spec{}
	for _, s := range c {
		for _, k := range s.Known {
			known, of[k] = append(known, k), s
		}
	}
	near := nearest.Name(base, known)
	if s, ok := of[near]; ok && (strings.EqualFold(near, base) || nearest.Name(name, c.Names()) == "") {
		suggested, doc := s.Name, s.Doc
		if p, ok := s.about(near); ok {
			suggested, doc = s.nameOf(p), p.Doc
		}
		return fmt.Sprintf("did you mean %q, %s? %s", suggested, doc, c.list())
	}
	return nearest.Hint(name, c.Names()) + c.list()
}

// list names the strategies without their presets, which are many.
func (c Catalogue) list() string {
	var names []string
	for _, s := range c {
		names = append(names, s.Name)
	}
	return "want one of " + strings.Join(names, ", ") + `; "vramyard strategies" lists the presets`
}

// wanted returns the suggestion for an unknown preset: the nearest name; else the preset whose
// description has that word, such as the name of a framework's setting.
func (s Spec) wanted(name, preset string) string {
	if p, ok := s.about(preset); ok && nearest.Name(name, s.names()) == "" {
		return fmt.Sprintf("did you mean %q, %s? want one of %s", s.nameOf(p), p.Doc, strings.Join(s.names(), ", "))
	}
	return nearest.Want(name, s.names())
}

// about returns the first preset whose description has a word.
func (s Spec) about(word string) (Preset, bool) {
	words := func(r rune) bool { return r != '_' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	for _, p := range s.Presets {
		if slices.Contains(strings.FieldsFunc(p.Doc, words), word) {
			return p, true
		}
	}
	return Preset{}, false
}

// Spec returns the entry with the given name: of a strategy without preset, or of an original.
func (c Catalogue) Spec(name string) (Spec, bool) {
	for _, s := range c {
		for _, o := range append([]Spec{s}, s.Originals...) {
			if o.Name == name {
				return o, true
			}
		}
	}
	return Spec{}, false
}

// Names returns every complete name that Lookup accepts: each preset, and each strategy without
// presets, except the ones configured by [Spec.Given].
func (c Catalogue) Names() []string {
	var all []string
	for _, s := range c {
		all = append(all, s.names()...)
	}
	return all
}

// Default returns the names in a default list, in the order of the catalogue. The yardstick
// comes first in the list of timed strategies.
func (c Catalogue) Default(list Lists) []string {
	var all []string
	for _, s := range c {
		for i, p := range s.Listed() {
			in := p.In
			if in == 0 && i == 0 {
				in = everyList
			}
			switch name := s.nameOf(p); {
			case in&list == 0:
			case list&Timed != 0 && in&Yardstick != 0:
				all = slices.Insert(all, 0, name)
			default:
				all = append(all, name)
			}
		}
	}
	return all
}

// Listed returns the presets of a strategy. A strategy without presets has one without a name,
// unless [Spec.Given] configures it.
func (s Spec) Listed() []Preset {
	if len(s.Presets) == 0 && s.Given == nil {
		return []Preset{{Doc: s.Doc}}
	}
	return s.Presets
}

func (s Spec) names() []string {
	var all []string
	for _, p := range s.Listed() {
		all = append(all, s.nameOf(p))
	}
	return all
}

// nameOf returns the name of a preset of s, as Lookup accepts it.
func (s Spec) nameOf(p Preset) string {
	return strings.TrimSuffix(s.Name+":"+p.Name, ":")
}

// knobsOf reads the tags of a configuration struct.
func knobsOf[C any]() []Knob {
	t := reflect.TypeFor[C]()
	if t.Kind() != reflect.Struct {
		return nil
	}
	defaults := defaultsOf[C]()
	var knobs []Knob
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		k := Knob{Name: name, Type: knobType(f.Type), Doc: f.Tag.Get("doc"), Default: string(defaults[name])}
		if grid := f.Tag.Get("grid"); grid != "" {
			for value := range strings.SplitSeq(grid, ",") {
				k.Grid = append(k.Grid, k.inJSON(value))
			}
		}
		knobs = append(knobs, k)
	}
	return knobs
}

// defaultsOf returns the fields of the zero configuration with its defaults filled in, in
// JSON, or nothing if there is no such configuration.
func defaultsOf[C any]() (fields map[string]json.RawMessage) {
	var c C
	if d, ok := any(c).(DefaultedConfig[C]); ok {
		var err error
		if c, err = d.WithDefaults(); err != nil {
			return nil
		}
	}
	text, err := json.Marshal(c)
	if err != nil || json.Unmarshal(text, &fields) != nil {
		return nil
	}
	return fields
}

// inJSON returns a value of the grid tag as JSON: it quotes texts and sizes with a unit.
func (k Knob) inJSON(value string) string {
	if json.Valid([]byte(value)) && k.Type != "text" {
		return value
	}
	quoted, _ := json.Marshal(value) // a string can always be encoded
	return string(quoted)
}

// knobType returns the type of a configuration field for people.
func knobType(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[device.Size]():
		return "size"
	case t == reflect.TypeFor[json.RawMessage]():
		return "object"
	case t.Kind() == reflect.Bool:
		return "yes/no"
	case t.Kind() == reflect.String:
		return "text"
	case t.Kind() == reflect.Slice:
		return "list"
	default:
		return "number"
	}
}
