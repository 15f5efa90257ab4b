package caching_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/strategies/caching"
)

// TestSettingsHoldForAPhase passes the marks of two phases to the allocator, and others.
func TestSettingsHoldForAPhase(t *testing.T) {
	c := newConfigured(t, caching.Config{Conf: "max_split_size_mb:20@load weights..loaded"})
	splits := func() bool {
		b := c.get(90)
		c.free(b)
		require.NoError(t, power.Mark(c.Allocator, "another"))
		part := c.get(12)
		defer c.free(part)
		return part.Addr == b.Addr
	}
	require.True(t, splits(), "before the phase")
	for range 2 {
		require.NoError(t, power.Mark(c.Allocator, "load weights"))
		require.False(t, splits(), "in the phase")
		_, err := c.Trim()
		require.NoError(t, err)
		require.NoError(t, power.Mark(c.Allocator, "loaded"))
		require.True(t, splits(), "after the phase")
	}
	plain := newConfigured(t, caching.Config{})
	require.ErrorIs(t, power.Mark(plain.Allocator, "loaded"), alloc.ErrUnsupported, "it has no phase")
}

// TestAPhaseOutlastsTheProgramsCalls changes settings in a phase: its own stay.
func TestAPhaseOutlastsTheProgramsCalls(t *testing.T) {
	c := newConfigured(t, caching.Config{Conf: "roundup_power2_divisions:2,expandable_segments:True@..loaded"})
	b := c.get(70)
	require.Equal(t, 96*device.MiB, b.Size)
	require.Equal(t, power.OwnerExpandable, c.owner(b.Addr))
	c.conf("")
	b = c.get(71)
	require.Equal(t, 71*device.MiB, b.Size, "the division is gone")
	require.Equal(t, power.OwnerExpandable, c.owner(b.Addr), "the phase is not")
	c.Mark("loaded")
	require.NotEqual(t, power.OwnerExpandable, c.owner(c.get(72).Addr))
}

// TestAPhaseIsExportedAsCalls has the calls that a program must make at the marks.
func TestAPhaseIsExportedAsCalls(t *testing.T) {
	for conf, want := range map[string]struct {
		environment []string
		calls       []setting.Call
	}{
		"max_split_size_mb:20@load..loaded": {nil, []setting.Call{
			{Mark: "load", Conf: "max_split_size_mb:20"}, {Mark: "loaded"},
		}},
		"max_split_size_mb:64, max_split_size_mb:20@load..loaded,roundup_power2_divisions:[1:4,>:2]": {
			[]string{"PYTORCH_ALLOC_CONF=max_split_size_mb:64,roundup_power2_divisions:[1:4,>:2]"},
			[]setting.Call{
				{Mark: "load", Conf: "roundup_power2_divisions:[1:4,>:2],max_split_size_mb:20"},
				{Mark: "loaded", Conf: "max_split_size_mb:64,roundup_power2_divisions:[1:4,>:2]"},
			},
		},
		" max_split_size_mb : 64 ,max_split_size_mb : 20 @load..the end": {
			[]string{"PYTORCH_ALLOC_CONF=max_split_size_mb:64"},
			[]setting.Call{{Mark: "load", Conf: "max_split_size_mb:20"}, {Mark: "the end", Conf: "max_split_size_mb:64"}},
		},
		`expandable_segments:True@.."a, b"`: {[]string{"PYTORCH_ALLOC_CONF=expandable_segments:True"},
			[]setting.Call{{Mark: "a, b", Conf: "expandable_segments:False"}}},
		"max_split_size_mb:64,expandable_segments :True@m..e": {[]string{"PYTORCH_ALLOC_CONF=max_split_size_mb:64"},
			[]setting.Call{
				{Mark: "m", Conf: "max_split_size_mb:64,expandable_segments:True"},
				{Mark: "e", Conf: "max_split_size_mb:64,expandable_segments:False"},
			}},
		`max_split_size_mb:20@"say \", b".."a\\",roundup_power2_divisions:8@"say \", b".."a\\"`: {nil, []setting.Call{
			{Mark: `say ", b`, Conf: "max_split_size_mb:20,roundup_power2_divisions:8"}, {Mark: `a\`},
		}},
		"roundup_power2_divisions:8@loaded..": {nil, []setting.Call{{Mark: "loaded", Conf: "roundup_power2_divisions:8"}}},
	} {
		c, err := caching.Config{Conf: conf}.WithDefaults()
		require.NoError(t, err, conf)
		e := c.Exports()
		require.Len(t, e, 1, conf)
		require.Equal(t, want.environment, e[0].Environment, conf)
		require.Equal(t, want.calls, e[0].Calls, conf)
		require.False(t, c.Unbound(), conf)
		require.Equal(t, c, c.Reduced(setting.Demand{Sizes: []device.Size{1}}), conf)
	}
}

func TestWrongPhasesAreErrors(t *testing.T) {
	for conf, want := range map[string]string{
		"max_split_size_mb:20@load":          ": want @FROM..TO, the marks at which it begins and ends",
		"max_split_size_mb:20@..":            ": want a mark before or after the dots",
		"max_split_size_mb:20@a..a":          ": it begins and ends at the same mark",
		`max_split_size_mb:20@"a..b`:         `: mark "a..b: want a closing quote`,
		`max_split_size_mb:20@a.."b" c`:      `: "c" after the mark "b": want a comma`,
		"max_split_size_mb:5@load..loaded":   "@load..loaded: max_split_size_mb:5: want at least 20, the size of a large",
		"large_segment_size_mb:32@a..b":      `: "large_segment_size_mb" cannot change for a phase: want one of`,
		"expandable_segments:True@a..b,@b..": `@b..: "" cannot change for a phase`,
		"max_split_size_mb:20@a..b,expandable_segments:True@a..": "expandable_segments:True@a..: another phase than " +
			"@a..b: want one phase",
	} {
		if strings.HasPrefix(want, ":") {
			want = conf + want
		}
		_, err := caching.Config{Conf: conf}.WithDefaults()
		require.ErrorContains(t, err, "caching: conf: "+want)
	}
}
