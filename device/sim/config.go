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

// End is the end of the simulated address space, 64 PiB above Base: more than five-level page
// tables give a real card, so only sizes near the limits of arithmetic reach it.
const End = Base + 1<<56

// topDownEnd is where the TopDown policy starts.
const topDownEnd = Base + 1<<40

// Policy selects the free addresses for a region.
type Policy string

// The policies; the package comment describes them.
const (
	FirstFit Policy = "first-fit"
	Bump     Policy = "bump"
	TopDown  Policy = "top-down"
)

// Memory is the level of detail of physical memory.
type Memory string

// The levels; each includes the previous ones.
const (
	Counted Memory = "counted" // number of charged bytes
	Placed  Memory = "placed"  // location of every piece
	Filled  Memory = "filled"  // contents
)

// Clock defines when work queued on a stream has finished.
type Clock string

// The clocks.
const (
	// Drained: when the host has waited for it, or a [device.Timeline] call drained it.
	Drained Clock = "drained"
	// Timed: also when the host's clock has passed its end.
	Timed Clock = "timed"
)

// Config describes a simulated device. Zero fields have their default.
type Config struct {
	// Capacity in bytes; 0 is unlimited.
	Capacity device.Size `json:"capacity"`
	// Policy is the placement policy; default FirstFit.
	Policy Policy `json:"policy"`
	// Align is the alignment of addresses in bytes, a power of two; default 2 MiB.
	Align device.Size `json:"align"`
	// Round is the unit in bytes to which sizes are rounded up, a power of two; default 256 B.
	Round device.Size `json:"round"`
	// Charge is the unit in bytes to which the size of a region is rounded up when it is charged
	// against the capacity, a power of two; default Round.
	Charge device.Size `json:"charge"`
	// Gap is the number of bytes that FirstFit keeps free after every region; default 0.
	Gap device.Size `json:"gap"`
	// FailAbove is the maximum size of a request in bytes; 0 is unlimited.
	FailAbove device.Size `json:"fail_above"`
	// Granularity is the unit in bytes of ranges and handles, a power of two of at least 4 KiB;
	// default 2 MiB.
	Granularity device.Size `json:"granularity"`
	// Ordinal, 0 to 255, is part of the numbers of handles, events and pools, so that no two devices
	// share a number.
	Ordinal uint8 `json:"ordinal"`
	// Memory is the level of detail of physical memory; default Counted.
	Memory Memory `json:"memory"`
	// Clock defines when work has finished; default Drained.
	Clock Clock `json:"clock"`
	// Costs is the table of the costs of calls; default Published.
	Costs CostTable `json:"costs"`
	// Bandwidth of memory in bytes per second, for calls that move data; default: an A100 of 80 GB.
	Bandwidth uint64 `json:"bandwidth"`
}

// ParseConfig parses a Config from JSON. Unknown or duplicate fields and trailing text are errors.
// An empty text is the zero Config.
func ParseConfig(raw []byte) (Config, error) {
	var c Config
	if err := strictjson.Decode(raw, &c); err != nil {
		return Config{}, fmt.Errorf("simulated device: %w", err)
	}
	return c.WithDefaults()
}

// WithDefaults replaces zero fields by their defaults. The error names the first invalid field.
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
	return c, c.validate()
}

// validate returns an error that names the first invalid field.
//
// Precondition: defaults are filled in.
func (c Config) validate() error {
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
