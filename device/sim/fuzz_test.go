package sim_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
)

// FuzzParseConfig reads made-up configurations. What is accepted must be a fixed point, and
// the device must hand out what was asked, where it was asked, within its capacity.
func FuzzParseConfig(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `{"capacity":"1GiB","policy":"top-down"}`, `{"policy":"bump","align":1,"round":1,"gap":7}`,
		`{"charge":"2MiB","capacity":"3MiB"}`, `{"fail_above":4096}`, `{"align":3}`, `{"capacty":1}`, `{} {}`,
		`{"capacity":18446744073709551615,"gap":1099511627776,"round":1099511627776}`,
	} {
		f.Add(seed, uint64(4096), uint64(256))
	}
	f.Fuzz(func(t *testing.T, text string, size, align uint64) {
		c, err := sim.ParseConfig([]byte(text))
		if err != nil {
			require.False(t, strings.HasPrefix(err.Error(), "{"))
			return
		}
		out, err := json.Marshal(c)
		require.NoError(t, err)
		again, err := sim.ParseConfig(out)
		require.NoError(t, err)
		require.Equal(t, c, again)
		dev, err := sim.New(c)
		require.NoError(t, err)
		var all []device.Region
		for n := range uint64(3) {
			r, err := dev.Reserve(device.Size(size+n), device.Size(align))
			if err != nil {
				continue
			}
			require.GreaterOrEqual(t, r.Size, device.Size(size+n))
			require.True(t, align == 0 || r.Addr.IsAligned(device.Size(align)))
			require.True(t, r.Addr.IsAligned(c.Align))
			for _, o := range all {
				require.True(t, r.End() <= o.Addr || o.End() <= r.Addr, "%v and %v overlap", r, o)
			}
			all = append(all, r)
		}
		u := dev.Usage()
		require.Len(t, all, u.Regions)
		require.True(t, u.Capacity == 0 || u.Charged <= u.Capacity)
		for _, r := range all {
			require.NoError(t, dev.Release(r.Addr))
		}
		require.Zero(t, dev.Usage().Charged)
	})
}

// FuzzParseDevice looks for specifications that are taken and make no device.
func FuzzParseDevice(f *testing.F) {
	for _, spec := range []string{"sim", "sim:24GiB", "sim:h100-80g", "cuda:0", "sim:", "sim:0", "sim:1.5TiB",
		"sim:16EiB"} {
		f.Add(spec)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		c, err := sim.ParseDevice(spec)
		if err != nil {
			return
		}
		d, err := sim.New(c)
		if err != nil {
			t.Fatalf("%q: %v", spec, err)
		}
		if d.Config() != c {
			t.Fatalf("%q: %+v became %+v", spec, c, d.Config())
		}
	})
}
