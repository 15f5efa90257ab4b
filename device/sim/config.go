package sim

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/strictjson"
)

// Base is the lowest address of the simulated device.
const Base device.Addr = 0x7f0000000000

// End is the address just above the simulated address space: 64 PiB above Base, more
// than five-level page tables give a real card, so that only sizes near the limits of
// arithmetic ever meet it.
const End = Base + 1<<56

// topDownEnd is where the TopDown policy starts.
const topDownEnd = Base + 1<<40

// Policy says which free address a region takes.
type Policy string

// The policies; the package comment describes them.
const (
	FirstFit Policy = "first-fit"
	Bump     Policy = "bump"
	TopDown  Policy = "top-down"
)

// Memory says how much the device knows of its physical memory.
type Memory string

// The choices; each does what those before it do.
const (
	Counted Memory = "counted" // how much of it is charged
	Placed  Memory = "placed"  // and which pieces of it are taken
	Filled  Memory = "filled"  // and what is in it
)

// Clock says when work that is queued on a stream has finished.
type Clock string

// The clocks.
const (
	// Drained: when the host has waited for it, or [device.Timeline] was told.
	Drained Clock = "drained"
	// Timed: besides, when the host's clock has passed the time that it ends at.
	Timed Clock = "timed"
)

// Config describes a simulated device. The zero value of each field means its default.
type Config struct {
	// Capacity in bytes; 0 is unlimited.
	Capacity device.Size `json:"capacity"`
	// Policy is the placement policy; default FirstFit.
	Policy Policy `json:"policy"`
	// Align in bytes, a power of two: starts are multiples of it; default 2 MiB.
	Align device.Size `json:"align"`
	// Round in bytes, a power of two: sizes are rounded up to it; default 256 B.
	Round device.Size `json:"round"`
	// Charge in bytes, a power of two: what a region counts against the capacity is its
	// size rounded up to this; default Round.
	Charge device.Size `json:"charge"`
	// Gap in bytes kept free behind every region by FirstFit; default 0.
	Gap device.Size `json:"gap"`
	// FailAbove in bytes: larger requests are refused; 0 refuses none by size.
	FailAbove device.Size `json:"fail_above"`
	// Granularity in bytes, a power of two of at least 4 KiB: ranges and handles are whole
	// multiples of it; default 2 MiB.
	Granularity device.Size `json:"granularity"`
	// Ordinal tells devices apart: handles, events and pools of devices with different
	// ordinals, 0 to 255, have different numbers.
	Ordinal uint8 `json:"ordinal"`
	// Memory says how much is known of physical memory; default Counted.
	Memory Memory `json:"memory"`
	// Clock says when work has finished; default Drained.
	Clock Clock `json:"clock"`
	// Costs names the table of what calls cost; default Published.
	Costs CostTable `json:"costs"`
	// Bandwidth of memory in bytes a second, for calls that move it; default that of an A100 of
	// 80 GB.
	Bandwidth uint64 `json:"bandwidth"`
}

// ParseConfig reads a Config from JSON. Unknown fields, fields given twice and trailing text are
// errors; nothing at all is the zero Config.
func ParseConfig(raw []byte) (Config, error) {
	var c Config
	if err := strictjson.Decode(raw, &c); err != nil {
		return Config{}, fmt.Errorf("simulated device: %w", err)
	}
	return c.WithDefaults()
}

// WithDefaults fills the zero fields that have a default. The error names the first bad field.
func (c Config) WithDefaults() (Config, error) {
	c.Policy = cmp.Or(c.Policy, FirstFit)
	c.Align = cmp.Or(c.Align, 2*device.MiB)
	c.Round = cmp.Or(c.Round, 256)
	c.Charge = cmp.Or(c.Charge, c.Round)
	c.Granularity = cmp.Or(c.Granularity, 2*device.MiB)
	c.Memory = cmp.Or(c.Memory, Counted)
	c.Clock = cmp.Or(c.Clock, Drained)
	c.Costs = cmp.Or(c.Costs, Published)
	c.Bandwidth = cmp.Or(c.Bandwidth, 2039e9)
	return c, c.judge()
}

// judge returns an error that names the first bad field.
//
// Precondition: no field that has a default is zero.
func (c Config) judge() error {
	var tables []string
	for _, t := range CostTables() {
		tables = append(tables, string(t))
	}
	for _, f := range []struct {
		name  string
		value string
		want  []string
	}{
		{"policy", string(c.Policy), []string{string(FirstFit), string(Bump), string(TopDown)}},
		{"memory", string(c.Memory), []string{string(Counted), string(Placed), string(Filled)}},
		{"clock", string(c.Clock), []string{string(Drained), string(Timed)}},
		{"costs", string(c.Costs), tables},
	} {
		if !slices.Contains(f.want, f.value) {
			return fmt.Errorf("simulated device: %s %q: want one of %q", f.name, f.value, f.want)
		}
	}
	for _, f := range []struct {
		name string
		v    device.Size
	}{{"align", c.Align}, {"round", c.Round}, {"charge", c.Charge}, {"granularity", c.Granularity}} {
		if !device.IsPowerOfTwo(f.v) || f.v > device.TiB {
			return fmt.Errorf("simulated device: %s %d: want a power of two of at most 1TiB", f.name, f.v)
		}
	}
	if c.Granularity < 4*device.KiB {
		return fmt.Errorf("simulated device: granularity %d: want at least 4KiB", c.Granularity)
	}
	if c.Gap > device.TiB {
		return fmt.Errorf("simulated device: gap %d: want at most 1TiB", c.Gap)
	}
	return nil
}
