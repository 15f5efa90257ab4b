package bfc

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/internal/nearest"
)

// The names of the settings in TensorFlow and JAX. The last two are fields of TensorFlow's
// GPUOptions, not variables.
const (
	varForceGrowth = "TF_FORCE_GPU_ALLOW_GROWTH"
	varCollection  = "TF_ENABLE_GPU_GARBAGE_COLLECTION"
	varPreallocate = "XLA_PYTHON_CLIENT_PREALLOCATE"
	varFraction    = "XLA_PYTHON_CLIENT_MEM_FRACTION"
	varFractionNew = "XLA_CLIENT_MEM_FRACTION"
	optionGrowth   = "allow_growth"
	optionFraction = "per_process_gpu_memory_fraction"
)

// confNames are the names that Conf accepts, with the functions that read their values.
var confNames = []struct {
	name string
	read func(c *Config, value string) error
}{
	{varForceGrowth, readGrowth},
	{varCollection, func(c *Config, value string) (err error) {
		c.GarbageCollection, err = readSwitch(value)
		return err
	}},
	{varPreallocate, func(c *Config, value string) error {
		on, err := readSwitch(value)
		c.AllowGrowth = !on
		return err
	}},
	{varFraction, readFraction},
	{varFractionNew, readFraction},
	{optionGrowth, readGrowth},
	{optionFraction, readFraction},
}

var (
	errSwitch   = errors.New("want true or false")
	errFraction = errors.New("want a share of the card above 0, at most 1")
)

// ConfNames returns the names that [Config.Conf] accepts.
func ConfNames() []string {
	names := make([]string, len(confNames))
	for i, n := range confNames {
		names[i] = n.name
	}
	return names
}

// withConf returns the configuration with the fields that Conf sets, and without Conf. The error
// names the setting, the value and the expected values.
func (c Config) withConf() (Config, error) {
	var given []string
	for setting := range strings.FieldsSeq(c.Conf) {
		name, value, found := strings.Cut(setting, "=")
		if !found {
			return c, fmt.Errorf("%q: want NAME=VALUE", setting)
		}
		i := slices.Index(ConfNames(), name)
		switch {
		case i < 0:
			return c, fmt.Errorf("unknown setting %q: %s", name, nearest.Want(name, ConfNames()))
		case slices.Contains(given, name):
			return c, fmt.Errorf("%s is given twice", name)
		}
		given = append(given, name)
		if err := confNames[i].read(&c, value); err != nil {
			return c, fmt.Errorf("%s=%s: %w", name, value, err)
		}
	}
	if slices.Contains(given, varFraction) && slices.Contains(given, varFractionNew) {
		return c, fmt.Errorf("%s and %s: want one of them, JAX refuses both", varFraction, varFractionNew)
	}
	c.Conf = ""
	return c, nil
}

func readGrowth(c *Config, value string) (err error) {
	c.AllowGrowth, err = readSwitch(value)
	return err
}

// readSwitch reads true or false. TensorFlow ignores other texts, and JAX takes FALSE as true, so
// they are errors.
func readSwitch(value string) (bool, error) {
	switch value {
	case "true", "True", "1":
		return true, nil
	case "false", "False", "0":
		return false, nil
	}
	return false, errSwitch
}

// readFraction reads a share of the card. Larger shares than 1 need unified memory.
func readFraction(c *Config, value string) error {
	f, err := strconv.ParseFloat(value, 64)
	if err != nil || !(f > 0 && f <= 1) {
		return errFraction
	}
	c.MemoryFraction = f
	return nil
}
