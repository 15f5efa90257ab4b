package wrap_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/propstest"
	"github.com/vramyard/vramyard/strategies"
	"github.com/vramyard/vramyard/strategies/tlsf"
)

func TestShardedConformance(t *testing.T) { propstest.Run(t, shardedSubjects(t)...) }

// Two threads allocate in shards of their own; either may free the blocks of both.
func ExampleSharded() {
	dev, err := sim.New(sim.Config{Capacity: 64 * device.MiB})
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := wrap.Sharded(dev, 2, wrap.ByThread, func(src device.Source) (alloc.Strategy, error) {
		return tlsf.New(src, tlsf.Config{Limit: 32 * device.MiB})
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for thread := range uint32(2) {
		b, err := s.Alloc(alloc.Request{Size: 4096, Origin: alloc.OriginOf(0, thread+1)})
		fmt.Println(b.Addr, err)
	}
	fmt.Println(s.Stats().Live, "live blocks in", s.Stats().Regions, "regions")
	// Output:
	// 0x7f0000000000 <nil>
	// 0x7f0002000000 <nil>
	// 2 live blocks in 2 regions
}

// planner is a TLSF that keeps its forecast.
type planner struct {
	alloc.Strategy
	plan []power.Expected
}

func (p *planner) Plan(f power.Forecast) { p.plan = slices.Collect(f) }

// TestEveryShardPlans passes a forecast to two shards.
func TestEveryShardPlans(t *testing.T) {
	dev, err := sim.New(sim.Config{})
	require.NoError(t, err)
	var shards []*planner
	s, err := wrap.Sharded(dev, 2, wrap.ByThread, func(src device.Source) (alloc.Strategy, error) {
		inner, err := tlsf.New(src, tlsf.Config{})
		shards = append(shards, &planner{Strategy: inner})
		return shards[len(shards)-1], err
	})
	require.NoError(t, err)
	want := []power.Expected{{Request: alloc.Request{Size: 5}, Other: 1}, {Kind: power.ExpectFree}}
	require.NoError(t, power.Plan(s, slices.Values(want)))
	for _, p := range shards {
		require.Equal(t, want, p.plan)
	}
	require.NoError(t, s.Close())
}

func shardedSubjects(t *testing.T) []props.Subject {
	return []props.Subject{
		sharded(t, "sharded:tlsf", `{"shards":2}`, device.MiB),
		sharded(t, "sharded:tlsf:growth", `{"by":"stream"}`, 64*device.KiB),
		sharded(t, "sharded:caching", `{"by":"stream"}`, 96*device.MiB),
	}
}

// sharded returns the subject of a setup on a device.
func sharded(t *testing.T, name, config string, capacity device.Size) props.Subject {
	setup, err := (setting.Catalogue{setting.Sharded(strategies.All())}).Lookup(name, json.RawMessage(config))
	require.NoError(t, err)
	return props.SubjectOfSetup(setup.ForCapacity(capacity), sim.Config{Capacity: capacity, Align: 256})
}

func TestShardedSettings(t *testing.T) {
	c := setting.Catalogue{setting.Sharded(strategies.All())}
	for text, want := range map[string]string{
		`sharded:tlsf {"shards":-1}`:         "sharded: shards -1: want 1 to 1024",
		`sharded:tlsf {"by":"core"}`:         `sharded: by "core": want thread or stream`,
		`sharded {}`:                         "sharded: of: want the name of a strategy",
		`sharded:tlfs {}`:                    `did you mean "tlsf"?`,
		`sharded:tlsf {"config":{"no":1}}`:   `unknown field "no"`,
		`sharded:tlsf {"config":{"scan":4}}`: "",
	} {
		name, config, _ := strings.Cut(text, " ")
		s, err := c.Lookup(name, json.RawMessage(config))
		if want != "" {
			require.ErrorContains(t, err, want)
			continue
		}
		require.NoError(t, err)
		encoded, err := json.Marshal(s.ForCapacity(4 * device.MiB).Config)
		require.NoError(t, err)
		require.Contains(t, string(encoded), `"of":"tlsf","config":{`)
		require.Contains(t, string(encoded), `"limit":1048576`, "a quarter of the device for each of 4")
		again, err := c.Lookup("sharded", encoded)
		require.NoError(t, err, "a stored configuration can be used again")
		require.Equal(t, s.ForCapacity(4*device.MiB).Config, again.Config)
	}
	dev, err := sim.New(sim.Config{})
	require.NoError(t, err)
	_, err = wrap.Sharded(dev, 0, wrap.ByThread, nil)
	require.ErrorContains(t, err, "want at least 1")
}
