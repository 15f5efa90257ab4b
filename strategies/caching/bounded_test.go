package caching_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/propstest"
	"github.com/vramyard/vramyard/strategies/caching"
)

// TestMemoryStaysBounded churns through every combination of the keys that decide about memory,
// each with some of the other settings, with 8 GiB in use at most.
func TestMemoryStaysBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes some fifteen seconds, which -short leaves out")
	}
	keys := []string{
		"expandable_segments:True", "max_split_size_mb:64", "roundup_power2_divisions:8", "garbage_collection_threshold:0.6",
	}
	var all []props.Subject
	for n := range 1 << len(keys) {
		var conf []string
		for i, key := range keys {
			if n>>i&1 == 1 {
				conf = append(conf, key)
			}
		}
		for _, c := range []caching.Config{{}, {MemoryFraction: 0.9}, {Rules: caching.Rules26, Mended: true}} {
			c.Conf = strings.Join(conf, ",")
			all = append(all, bounded(t, c))
		}
	}
	propstest.RunBounded(t, 100_000, all...)
}

// bounded returns a subject for long runs. Where the size of the device decides something it has 32
// GiB, which is enough for private pools that keep what they were given, for each stream.
func bounded(t *testing.T, c caching.Config) props.Subject {
	t.Helper()
	c, err := c.WithDefaults()
	require.NoError(t, err)
	var on sim.Config
	if c.MemoryFraction > 0 || c.Mended || strings.Contains(c.Conf, "expandable") {
		on.Capacity = 32 * device.GiB
	}
	return props.SubjectOf(fmt.Sprintf("%s-%v-%v-%s", c.Rules, c.MemoryFraction, c.Mended, c.Conf), caching.New, c, on,
		c.Promises())
}
