package alloc_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
)

type toyConfig struct {
	Cells int           `json:"cells" doc:"number of cells" grid:"1,4"`
	Limit device.Size   `json:"limit" doc:"bytes" grid:"4096,64KiB"`
	Fast  bool          `json:"fast" doc:"go faster" grid:"true,false"`
	Kind  string        `json:"kind" doc:"kind" grid:"plain,0"`
	Sizes []device.Size `json:"sizes" doc:"sizes"`
	inner int
}

func (c toyConfig) WithDefaults() (toyConfig, error) {
	if c.Cells < 0 {
		return c, errToy
	}
	if c.Kind == "" {
		c.Kind = "plain"
	}
	return c, nil
}

func (c toyConfig) ForCapacity(n device.Size) toyConfig {
	c.Limit = n
	return c
}

func (c toyConfig) Preallocates() bool { return c.Fast }

var errToy = errors.New("toy: cells: negative")

func buildToy(_ device.Source, c toyConfig) (*toy, error) {
	if c.Kind == "none" {
		return nil, device.ErrOutOfMemory
	}
	return newToy(c.Cells + c.inner), nil
}

type plainConfig struct{}

func buildPlain(device.Source, plainConfig) (*toy, error) { return newToy(1), nil }

func toyCatalogue() setting.Catalogue {
	return setting.Catalogue{
		setting.SpecOf("toy", "a toy", buildToy,
			setting.Preset{Doc: "bare", JSON: `{"cells":3}`},
			setting.Preset{Name: "fast", Doc: "fast, as with FAST_TOYS=true", JSON: `{"cells":4,"fast":true}`}).KnownAs("plaything"),
		setting.SpecOf("plain", "no bare name", buildPlain, setting.Preset{Name: "only", Doc: "only"}),
	}
}

func TestLookupAppliesPresetThenOverride(t *testing.T) {
	c := toyCatalogue()
	s, err := c.Lookup("toy:fast", json.RawMessage(` {"limit":"2MiB","cells":7} `))
	require.NoError(t, err)
	require.Equal(t, "toy:fast", s.Name)
	require.Equal(t, toyConfig{Cells: 7, Limit: 2 * device.MiB, Fast: true, Kind: "plain"}, s.Config)
	require.True(t, s.Preallocates)
	fitted := s.ForCapacity(99)
	require.Equal(t, device.Size(99), fitted.Config.(toyConfig).Limit)
	require.Equal(t, 2*device.MiB, s.Config.(toyConfig).Limit, "the first setup is unchanged")
	dev, err := sim.New(sim.Config{})
	require.NoError(t, err)
	a, err := s.New(dev)
	require.NoError(t, err)
	cells := 0
	for range a.Walk {
		cells++
	}
	require.Equal(t, 7, cells)

	plain, err := c.Lookup("plain:only", nil)
	require.NoError(t, err)
	require.False(t, plain.Preallocates)
	require.Equal(t, plain.Name, plain.ForCapacity(5).Name)
}

func TestLookupRefuses(t *testing.T) {
	for _, c := range []struct{ name, config, want string }{
		{"tou", ``, `unknown strategy "tou": did you mean "toy"? want one of toy, plain; "vramyard strategies" lists the presets`},
		{"Plaything", ``, `unknown strategy "Plaything": did you mean "toy", a toy? want one of toy, `},
		{"toy:FAST_TOYS", ``, `unknown preset "FAST_TOYS" of toy: did you mean "toy:fast", fast, as with FAST_TOYS=true? want one`},
		{"toy:quick", ``, `unknown preset "quick" of toy: want one of toy, toy:fast`},
		{"toy", `{"cels":1}`, `configuration of toy: json: unknown field "cels"`},
		{"toy", `{"cells":1`, `configuration of toy: JSON ends in the middle`},
		{"toy", `{"cells":1}x`, `configuration of toy: text after the JSON object`},
		{"toy", `{"cells":"many"}`, `configuration of toy: cells: "many": want a whole number`},
		{"toy", `{"limit":"-1"}`, `configuration of toy: limit: size "-1"`},
		{"toy", `{"limit":-1}`, `configuration of toy: limit: size -1`},
		{"toy", `{"cells":1,"limit":null}`, `configuration of toy: limit: null: want a value`},
		{"toy", `{"kind":null}`, `configuration of toy: kind: null: want a value`},
		{"toy", `{"CELLS":1}`, `configuration of toy: json: unknown field "CELLS"`},
		{"toy", `{"cells":1,"cells":2}`, `configuration of toy: cells: given twice`},
		{"toy", `{"sizes":[1,-2]}`, `configuration of toy: sizes: size -2`},
		{"toy", `{"cells":-1}`, errToy.Error()},
		{"toy", `[1]`, `configuration of toy: want a JSON object`},
	} {
		_, err := toyCatalogue().Lookup(c.name, json.RawMessage(c.config))
		require.ErrorContains(t, err, c.want)
	}
}

// TestSetupPassesItsForecastOn builds a strategy that plans, and one that does not, from setups
// with a forecast.
func TestSetupPassesItsForecastOn(t *testing.T) {
	var built *rich
	c := append(toyCatalogue(), setting.SpecOf("rich", "", func(device.Source, toyConfig) (*rich, error) {
		built = &rich{toy: newToy(1)}
		return built, nil
	}))
	want := []power.Expected{{Request: alloc.Request{Size: 7}, Other: -1}}
	for _, name := range []string{"rich", "toy"} {
		s, err := c.Lookup(name, nil)
		require.NoError(t, err)
		s.Forecast = slices.Values(want)
		for _, s := range []setting.Setup{s, s.ForCapacity(9)} {
			_, err := s.New(nil)
			require.NoError(t, err)
			require.Equal(t, want, built.plan)
		}
	}
	s, err := c.Lookup("rich", nil)
	require.NoError(t, err)
	_, err = s.New(nil)
	require.NoError(t, err)
	require.Nil(t, built.plan)
}

// oldToy is the configuration of an original of the toy.
type oldToy struct {
	Compat string `json:"compat"`
	Beads  int    `json:"beads"`
}

// TestOriginalsHaveTheirOwnConfig looks up an original by its preset and by its field.
func TestOriginalsHaveTheirOwnConfig(t *testing.T) {
	c := toyCatalogue()
	c[0].Presets = append(c[0].Presets, setting.Preset{Name: "old", Doc: "as in 1965", JSON: `{"compat":"old"}`})
	c[0] = c[0].WithOriginals(setting.SpecOf("toy:old", "", func(_ device.Source, c oldToy) (*toy, error) {
		return newToy(c.Beads), nil
	}))
	require.Equal(t, []string{"toy", "toy:fast", "toy:old", "plain:only"}, c.Names())
	for name, config := range map[string]string{"toy:old": `{"beads":5}`, "toy": `{"beads":5,"compat":"old"}`} {
		s, err := c.Lookup(name, json.RawMessage(config))
		require.NoError(t, err)
		require.Equal(t, name, s.Name)
		require.Equal(t, oldToy{"old", 5}, s.Config)
	}
	for _, want := range []struct{ name, config, err string }{
		{"toy:old", `{"cells":1}`, `configuration of toy:old: json: unknown field "cells"`},
		{"toy", `{"beads":1}`, `configuration of toy: json: unknown field "beads"`},
		{"toy", `{"compat":"odd"}`, `configuration of toy: compat "odd": did you mean "old"? want one of old`},
		{"plain:only", `{"compat":"old"}`, `configuration of plain:only: json: unknown field "compat"`},
	} {
		_, err := c.Lookup(want.name, json.RawMessage(want.config))
		require.ErrorContains(t, err, want.err)
	}
	spec, ok := c.Spec("toy:old")
	require.True(t, ok)
	require.Equal(t, "beads", spec.Knobs[1].Name)
	require.Equal(t, "as in 1965", spec.Doc)
}

// A setup changes the configuration of a toy by these methods.
func (c toyConfig) WithLocks() toyConfig               { return c }
func (c toyConfig) Share() float64                     { return 0 }
func (c toyConfig) WithShare(float64) toyConfig        { return c }
func (c toyConfig) Reduced(d setting.Demand) toyConfig { c.Cells = len(d.Sizes); return c }

// foreignConfig is the configuration of a strategy that is decided by other code.
type foreignConfig struct {
	Code string `json:"code"`
}

func (c foreignConfig) Semantics() string { return c.Code }

// TestSetupsHaveTheSemanticsOfTheirSpec looks up strategies with and without a version, originals,
// shards and foreign code.
func TestSetupsHaveTheSemanticsOfTheirSpec(t *testing.T) {
	c := toyCatalogue()
	c[0].Presets = append(c[0].Presets, setting.Preset{Name: "old", JSON: `{"compat":"old"}`})
	old := setting.SpecOf("toy:old", "", func(device.Source, oldToy) (*toy, error) { return newToy(1), nil })
	c[0] = c[0].WithSemantics(3).WithOriginals(old.WithSemantics(7))
	build := func(device.Source, foreignConfig) (*toy, error) { return newToy(1), nil }
	c = append(c, setting.SpecOf("foreign", "", build))
	c = append(c, setting.Sharded(c))
	c = append(c, setting.Sharded(c))
	c[4].Name = "twice"
	for _, want := range []struct{ name, config, semantics string }{
		{"toy", ``, "3"},
		{"toy:fast", ``, "3"},
		{"toy:old", ``, "7"},
		{"toy", `{"compat":"old"}`, "7"},
		{"plain:only", ``, "1"},
		{"foreign", `{"code":"c0de"}`, "1,c0de"},
		{"foreign", ``, ""},
		{"sharded:toy:fast", ``, "1,toy:fast=3"},
		{"sharded:foreign", `{"config":{"code":"c0de"}}`, "1,foreign=1,c0de"},
		{"sharded:foreign", ``, ""},
		{"twice:sharded:toy", ``, "1,sharded:toy=1,toy=3"},
	} {
		s, err := c.Lookup(want.name, json.RawMessage(want.config))
		require.NoError(t, err, want)
		require.Equal(t, want.semantics, s.Semantics, want)
		require.Equal(t, want.semantics, s.ForCapacity(5).Semantics, want)
		require.Equal(t, want.semantics, s.Reduced(setting.Demand{}).Semantics, want)
	}
	s, err := c.Lookup("toy", nil)
	require.NoError(t, err)
	s.Name, s.Forecast = "mine", slices.Values([]power.Expected{})
	locked, ok := s.WithLocks()
	require.True(t, ok)
	shared, ok := s.WithShare(0.5)
	require.True(t, ok)
	for _, made := range []setting.Setup{locked, shared, s.Reduced(setting.Demand{}), s.ForCapacity(5)} {
		require.Equal(t, "3", made.Semantics)
		require.Equal(t, "mine", made.Name)
		require.NotNil(t, made.Forecast)
	}
	sharded, err := s.Sharded("mine", 2, "stream")
	require.NoError(t, err)
	require.Equal(t, "1,mine=3", sharded.Semantics)

	s = setting.SetupOf("toy", buildToy, toyConfig{})
	require.Empty(t, s.Semantics, "no catalogue, no version")
	sharded, err = s.Sharded("shards", 2, "stream")
	require.NoError(t, err)
	require.Empty(t, sharded.Semantics)
}

func TestBuildErrorReturnsNoStrategy(t *testing.T) {
	s, err := toyCatalogue().Lookup("toy", json.RawMessage(`{"kind":"none"}`))
	require.NoError(t, err)
	dev, err := sim.New(sim.Config{})
	require.NoError(t, err)
	a, err := s.New(dev)
	require.ErrorIs(t, err, device.ErrOutOfMemory)
	require.Nil(t, a)
}

func TestStrategiesWithoutPresetsAreListed(t *testing.T) {
	given := setting.SpecOf("given", "named by its configuration", buildPlain)
	given.Given = func(string) (string, error) { return "", nil }
	c := append(toyCatalogue(), setting.SpecOf("bare", "no presets", buildPlain), given,
		setting.SpecOf("first", "the yardstick", buildPlain, setting.Preset{In: setting.Timed | setting.Yardstick},
			setting.Preset{Name: "more", In: setting.Remat}))
	require.Equal(t, []string{"toy", "toy:fast", "plain:only", "bare", "first", "first:more"}, c.Names())
	require.Equal(t, []string{"toy", "plain:only", "bare"}, c.Default(setting.Compared))
	require.Equal(t, []string{"toy", "plain:only", "bare", "first:more"}, c.Default(setting.Remat))
	require.Equal(t, []string{"first", "toy", "plain:only", "bare"}, c.Default(setting.Timed))
	for _, name := range c.Names() {
		_, err := c.Lookup(name, nil)
		require.NoError(t, err, name)
	}
}

func TestNamesAndKnobs(t *testing.T) {
	c := toyCatalogue()
	require.Equal(t, []string{"toy", "toy:fast", "plain:only"}, c.Names())
	spec, ok := c.Spec("toy")
	require.True(t, ok)
	require.Equal(t, []setting.Knob{
		{Name: "cells", Type: "number", Doc: "number of cells", Default: "0", Grid: []string{"1", "4"}},
		{Name: "limit", Type: "size", Doc: "bytes", Default: "0", Grid: []string{"4096", `"64KiB"`}},
		{Name: "fast", Type: "yes/no", Doc: "go faster", Default: "false", Grid: []string{"true", "false"}},
		{Name: "kind", Type: "text", Doc: "kind", Default: `"plain"`, Grid: []string{`"plain"`, `"0"`}},
		{Name: "sizes", Type: "list", Doc: "sizes", Default: "null"},
	}, spec.Knobs)
	_, ok = c.Spec("toy:fast")
	require.False(t, ok)
	s, err := c.Lookup("toy", json.RawMessage(`{"sizes":null}`))
	require.NoError(t, err, "what is written can be read again")
	require.Nil(t, s.Config.(toyConfig).Sizes)
	_, err = c.Lookup("plain", nil)
	require.NoError(t, err, "a name without a bare preset starts from the zero configuration")
}

func TestStatsHelpers(t *testing.T) {
	var s alloc.Stats
	s.RegionAdded(1000)
	s.Granted(10, 16)
	s.Granted(20, 32)
	s.Freed(10, 16)
	s.RegionAdded(500)
	s.RegionReleased(1000)
	require.Equal(t, alloc.Stats{
		Allocs: 2, Frees: 1, Live: 1, Requested: 20, Allocated: 32, Active: 32, Reserved: 500,
		PeakRequested: 30, PeakAllocated: 48, PeakActive: 48, PeakReserved: 1500, LargestAlloc: 32,
		Regions: 1, Reserves: 2, Releases: 1,
	}, s)
	s.Clear()
	require.Equal(t, alloc.Stats{
		Live: 1, Requested: 20, Allocated: 32, Active: 32, Reserved: 500,
		PeakRequested: 20, PeakAllocated: 32, PeakActive: 32, PeakReserved: 1500,
		Regions: 1, Reserves: 2, Releases: 1,
	}, s)
}
