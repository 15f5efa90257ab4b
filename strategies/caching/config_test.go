package caching

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConfigIsJudged(t *testing.T) {
	c, err := Config{Conf: " backend : native "}.WithDefaults()
	require.NoError(t, err)
	require.Equal(t, Config{Conf: " backend : native ", Rules: Rules211}, c, "the string stays as it was written")

	for want, c := range map[string]Config{
		`caching: rules "2.7": want one of 2.6, 2.11, 2.12, 2.13`: {Rules: "2.7"},
		"caching: memory_fraction 1.5: want 0":                    {MemoryFraction: 1.5},
		"caching: memory_fraction -0.5: want 0":                   {MemoryFraction: -0.5},
		"caching: memory_fraction NaN: want 0":                    {MemoryFraction: math.NaN()},
		"caching: memory_fraction 0.5: conf says per_process_memory_fraction:0.25": {MemoryFraction: 0.5,
			Conf: "per_process_memory_fraction:0.25"},
		"caching: memory_fraction 0.5: conf says per_process_memory_fraction:0": {MemoryFraction: 0.5,
			Conf: "per_process_memory_fraction:0"},
		"caching: conf: per_process_memory_fraction: rules 2.6 have no such key": {Rules: Rules26,
			Conf: "per_process_memory_fraction:1"},
	} {
		_, err := c.WithDefaults()
		require.ErrorContains(t, err, want)
	}
}

func TestTheWholeDeviceIsNoBoundIn211(t *testing.T) {
	for _, c := range []struct {
		Config
		limited  bool
		fraction float64
	}{
		{Config{Rules: Rules26}, false, 0},
		{Config{Rules: Rules26, MemoryFraction: 1}, true, 1},
		{Config{Rules: Rules26, MemoryFraction: 0.5}, true, 0.5},
		{Config{Rules: Rules211, MemoryFraction: 1}, false, 1},
		{Config{Rules: Rules211, MemoryFraction: 0.5}, true, 0.5},
		{Config{Rules: Rules211, MemoryFraction: 0.5, Conf: "per_process_memory_fraction:0.5"}, true, 0.5},
		{Config{Rules: Rules211, MemoryFraction: 1, Conf: "per_process_memory_fraction:1"}, false, 1},
	} {
		s, err := c.settings()
		require.NoError(t, err)
		require.Equal(t, c.limited, s.limited, "%+v", c.Config)
		require.Equal(t, c.fraction, s.fraction, "%+v", c.Config)
	}
}
