package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
)

// deviceFlags are the flags that select the device of a command.
type deviceFlags struct {
	device, sim spec // commands may have no --sim
}

// spec is the value of a flag that must not be empty, as the value of an unset shell variable would
// be.
type spec struct {
	value string
	given bool
	exact bool // from a trace, where numbers of bytes have no unit
}

func (s *spec) add(c *cobra.Command, name, usage string) {
	c.Flags().Func(name, usage, func(value string) error {
		*s = spec{value: value, given: true}
		return nil
	})
}

// judgeUnit refuses a JSON object in which the field of a size is a number that lacks its unit, as
// [device.ParseCapacity] does. Other errors of the object are found when it is read.
func judgeUnit(object, field string) error {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(object), &fields) != nil {
		return nil
	}
	text := strings.Trim(string(fields[field]), `"`)
	if n, err := strconv.ParseUint(text, 10, 64); err != nil || n == 0 {
		return nil
	}
	if _, err := device.ParseCapacity(text); err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return nil
}

// addDevice adds the flag --device; does is the part of its help text that is specific to the
// command.
func (f *deviceFlags) addDevice(c *cobra.Command, does string) {
	f.device.add(c, "device",
		"simulated `device`: sim[:SIZE or :CARD], such as \"sim:24GiB\" or \"sim:h100-80g\" (\"vramyard devices\" lists the "+
			"cards); "+does)
}

// addSim adds the flag --sim; means describes its value.
func (f *deviceFlags) addSim(c *cobra.Command, means string) {
	f.sim.add(c, "sim", means)
}

// namesPolicy reports whether --sim names the policy of the device.
func (f *deviceFlags) namesPolicy() bool {
	var c sim.Config
	return json.Unmarshal([]byte(f.sim.value), &c) == nil && c.Policy != ""
}

// config returns the device that the flags name, or the default one without flags.
func (f *deviceFlags) config() (sim.Config, error) {
	switch {
	case f.device.given && f.sim.given:
		return sim.Config{}, flagError("sim", errors.New("--device says what the device is: want one of the two"))
	case f.device.given:
		c, err := sim.ParseDevice(f.device.value)
		return c, flagError("device", err)
	case !f.sim.given:
		return sim.Config{}, nil
	}
	c, err := sim.ParseConfig([]byte(f.sim.value))
	if err == nil && !f.sim.exact {
		err = judgeUnit(f.sim.value, "capacity")
	}
	if strings.TrimSpace(f.sim.value) == "" {
		err = errors.New("want a JSON object")
	}
	return c, flagError("sim", err)
}

// place returns the device that the flags name, which may be a GPU.
func (f *deviceFlags) place() (replay.Target, error) {
	if !f.device.given || f.sim.given {
		c, err := f.config()
		return replay.SimTarget(c), err
	}
	p, err := replay.ParseTarget(f.device.value)
	return p, flagError("device", err)
}

// placed is shape for commands that may use a GPU.
func (f *deviceFlags) placed() (replay.Target, device.Size, error) {
	if !f.device.given || f.sim.given {
		c, n, err := f.shape()
		return replay.SimTarget(c), n, err
	}
	p, err := f.place()
	n := p.Capacity
	p.Capacity = 0
	return p, n, err
}

// onlySimulated refuses outputs that need several identical devices, which only simulation offers.
func onlySimulated(p replay.Target, wanted ...*output) error {
	for _, o := range wanted {
		if p.GPU != nil && o.path != "" {
			return flagError(o.flag, errors.New("is made on simulated devices only, not with --device cuda"))
		}
	}
	return nil
}

// addPlace adds the flag --device to a command that also runs on a GPU; does is the part of its
// help text that is specific to the command.
func (f *deviceFlags) addPlace(c *cobra.Command, does string) {
	f.device.add(c, "device",
		"`device`: sim[:SIZE or :CARD] for a simulated one, cuda:N[:SIZE] for a GPU or a part of it, such as \"sim:24GiB\", "+
			"\"sim:h100-80g\" or \"cuda:0\" (\"vramyard devices\" lists cards and GPUs); "+does)
}

// shape returns the device without its capacity, and the capacity separately, 0 if unbounded. It is
// for commands that choose capacities themselves, whose --sim may have none.
func (f *deviceFlags) shape() (sim.Config, device.Size, error) {
	c, err := f.config()
	if err == nil && f.sim.given && c.Capacity != 0 {
		err = flagError("sim", errors.New("capacity: this command sets it"))
	}
	if err != nil {
		return sim.Config{}, 0, err
	}
	n := c.Capacity
	c.Capacity = 0
	return c, n, nil
}

// simShapeUsage describes the flag --sim of commands that choose capacities themselves.
const simShapeUsage = `settings of the simulated device except its capacity, as a JSON object; {"charge":"2MiB"} charges whole pages, as cards do`

func defaultDevice() string {
	c, err := sim.ParseConfig([]byte("{}"))
	if err != nil {
		panic(err) // every field has a default
	}
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // a struct of numbers and texts
	}
	return string(text)
}
