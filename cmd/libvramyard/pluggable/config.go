package pluggable

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
)

// The environment variables.
const (
	EnvStrategy = "VRAMYARD_STRATEGY"     // name and preset as on the command line; default "caching"
	EnvConfig   = "VRAMYARD_CONFIG"       // fields of the strategy's configuration, a JSON object
	EnvDevice   = "VRAMYARD_DEVICE"       // "cuda", the default, or a simulated device such as "sim:24GiB"
	EnvTrace    = "VRAMYARD_TRACE"        // trace file, written when the program ends
	EnvEvents   = "VRAMYARD_TRACE_EVENTS" // maximum number of events in a trace
	EnvStats    = "VRAMYARD_STATS"        // statistics file, written when the program ends
	EnvPoison   = "VRAMYARD_POISON"       // 1: fill freed memory and compare it when it is reused
	EnvPanic    = "VRAMYARD_TEST_PANIC"   // for tests: number of the request that panics
)

// defaultEvents bounds a trace: 24 bytes of host memory for each event make 480 MB.
const defaultEvents = 20_000_000

// config holds the parsed environment variables.
type config struct {
	setup   setting.Setup
	device  string
	sim     *sim.Config // nil for a real device
	limited bool        // whether the user has set the limit of the strategy
	trace   string
	events  int
	stats   string
	poison  bool
	panicAt uint64
}

// parse reads the environment. The error names the first invalid variable.
func parse(env func(string) string, catalogue setting.Catalogue) (c config, err error) {
	name := env(EnvStrategy)
	if name == "" {
		name = "caching"
	}
	if _, err = catalogue.Lookup(name, nil); err != nil {
		return c, fmt.Errorf("%s: %w", EnvStrategy, err)
	}
	override := json.RawMessage(env(EnvConfig))
	if c.setup, err = catalogue.Lookup(name, override); err != nil {
		return c, fmt.Errorf("%s: %w", EnvConfig, err)
	}
	var fields map[string]json.RawMessage
	if len(override) > 0 && json.Unmarshal(override, &fields) == nil {
		_, c.limited = fields["limit"]
	}
	if c.device = env(EnvDevice); c.device == "" {
		c.device = "cuda"
	}
	if c.device != "cuda" {
		s, err := sim.ParseDevice(c.device)
		if err != nil {
			return c, fmt.Errorf("%s: %w; or cuda", EnvDevice, err)
		}
		c.sim = &s
	}
	if c.events, err = number(env, EnvEvents, defaultEvents); err != nil {
		return c, err
	}
	panicAt, err := number(env, EnvPanic, 0)
	if err != nil {
		return c, err
	}
	c.panicAt = uint64(panicAt)
	switch v := env(EnvPoison); v {
	case "", "0":
	case "1":
		c.poison = true
	default:
		return c, fmt.Errorf("%s: %q: want 0 or 1", EnvPoison, v)
	}
	c.trace, c.stats = env(EnvTrace), env(EnvStats)
	for _, f := range []struct{ name, path string }{{EnvTrace, c.trace}, {EnvStats, c.stats}} {
		if f.path == "-" {
			return c, fmt.Errorf("%s: want the name of a file", f.name)
		}
	}
	return c, nil
}

func number(env func(string) string, name string, unset int) (int, error) {
	text := env(name)
	if text == "" {
		return unset, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%s: %q: want a number from 1 on", name, text)
	}
	return n, nil
}

// errContents is the error of poisoning on a device without access to contents.
var errContents = errors.New(EnvPoison + ": the device does not let its memory be written")

func (c *config) open(ordinal int, cuda func(int) (device.Device, error)) (device.Device, error) {
	if c.sim == nil {
		if cuda == nil {
			return nil, errors.New(EnvDevice + ": this build has no real devices: want sim, or sim:24GiB")
		}
		return cuda(ordinal)
	}
	s := *c.sim
	s.Ordinal = uint8(ordinal)
	s.Clock = sim.Timed // work outside of the simulation takes no simulated time
	if c.poison {
		s.Memory = sim.Filled
	}
	return sim.New(s)
}
