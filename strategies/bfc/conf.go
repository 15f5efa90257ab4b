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

// The frameworks, as in [setting.Export].
const (
	tensorFlow = "TensorFlow"
	jax        = "JAX"
)

// confNames are the names that Conf accepts, with the functions that read their values.
var confNames = []struct {
	framework, name string
	read            func(c *Config, value string) error
}{
	{tensorFlow, varForceGrowth, func(c *Config, value string) (err error) {
		c.AllowGrowth, err = readVariable(value)
		return err
	}},
	{tensorFlow, varCollection, func(c *Config, value string) (err error) {
		c.GarbageCollection, err = readVariable(value)
		return err
	}},
	{jax, varPreallocate, func(c *Config, value string) error {
		on, err := readSwitch(value)
		c.AllowGrowth = !on
		return err
	}},
	{jax, varFraction, readFraction},
	{jax, varFractionNew, readFraction},
	{tensorFlow, optionGrowth, func(c *Config, value string) (err error) {
		c.AllowGrowth, err = readSwitch(value)
		return err
	}},
	{tensorFlow, optionFraction, readFraction},
}

var (
	errSwitch   = errors.New("want true or false")
	errVariable = errors.New("want true or false, TensorFlow ignores other values")
	errFraction = errors.New("want a share of the card above 0, at most 1")
)

// ConfNames returns the names that [Config.Conf] accepts, of TensorFlow or JAX only unless the
// framework is "".
func ConfNames(framework string) (names []string) {
	for _, n := range confNames {
		if framework == "" || n.framework == framework {
			names = append(names, n.name)
		}
	}
	return names
}

// withConf returns the configuration with the fields that Conf sets, and without Conf. The error
// names the setting, the value and the expected values.
func (c Config) withConf() (Config, error) {
	var given []string
	settings := strings.Fields(c.Conf)
	// In TensorFlow the variable overrides the option, whatever their order.
	if i := slices.IndexFunc(settings, func(s string) bool { return strings.HasPrefix(s, varForceGrowth+"=") }); i >= 0 {
		forced := settings[i]
		settings = append(slices.Delete(settings, i, i+1), forced)
	}
	for _, setting := range settings {
		name, value, found := strings.Cut(setting, "=")
		if !found {
			return c, fmt.Errorf("%q: want NAME=VALUE", setting)
		}
		i := slices.Index(ConfNames(""), name)
		switch {
		case i < 0:
			return c, fmt.Errorf("unknown setting %q: %s", name, nearest.Want(name, ConfNames("")))
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

// readVariable reads a variable of TensorFlow, which accepts two texts, logs an error about others
// and ignores them. Source: gpu_bfc_allocator.cc, GetAllowGrowthValue, GetGarbageCollectionValue.
func readVariable(value string) (bool, error) {
	if value != "true" && value != "false" {
		return false, errVariable
	}
	return value == "true", nil
}

// readSwitch reads true or false. JAX takes FALSE as true, so other texts are errors.
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
