//go:build linux && (amd64 || arm64)

package replay_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/cuda"
	"github.com/vramyard/vramyard/device/cuda/cudatest"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
)

// gpu returns the first GPU of a stand-in for the driver.
func gpu(t *testing.T, limit device.Size) replay.Target {
	t.Helper()
	driver := cudatest.Build(t)
	cudatest.Steer(t, driver)
	list, err := cuda.List(driver)
	require.NoError(t, err)
	return replay.Target{Config: sim.Config{Capacity: limit}, GPU: &replay.GPU{GPU: list.GPUs[0], Driver: list.Driver,
		Library: driver}}
}

func TestASimulatedPlaceIsItsConfiguration(t *testing.T) {
	p, err := replay.ParseTarget("sim:24GiB")
	require.NoError(t, err)
	c, err := sim.ParseDevice("sim:24GiB")
	require.NoError(t, err)
	assert.Equal(t, replay.SimTarget(c), p)
	want, err := json.Marshal(c)
	require.NoError(t, err)
	got, err := json.Marshal(p)
	require.NoError(t, err)
	assert.JSONEq(t, string(want), string(got))
	var back replay.Target
	require.NoError(t, json.Unmarshal(got, &back))
	assert.Equal(t, p, back)
	assert.Equal(t, 7, p.AtOnce(7))
	assert.Equal(t, device.TiB, p.Ample(device.TiB))
	stop, err := p.Watch(time.Millisecond)
	require.NoError(t, err)
	seen, err := stop()
	assert.NoError(t, err)
	assert.Nil(t, seen)
}

func TestAGPUIsOpenedWithItsLimit(t *testing.T) {
	p := gpu(t, 64*device.MiB)
	assert.Equal(t, 1, p.AtOnce(7))
	assert.Equal(t, device.GiB, p.Ample(device.TiB), "what is free")
	assert.Equal(t, device.MiB, p.Ample(device.MiB))
	d, err := p.Open()
	require.NoError(t, err)
	assert.Equal(t, 64*device.MiB, d.Usage().Capacity)
	_, err = d.Reserve(65*device.MiB, 0)
	assert.ErrorIs(t, err, device.ErrOutOfMemory)
	assert.NoError(t, d.Close())
	text, err := json.Marshal(p)
	require.NoError(t, err)
	var back replay.Target
	require.NoError(t, json.Unmarshal(text, &back))
	assert.Equal(t, p, back)
}

func TestDriverIsPolledDuringAReplay(t *testing.T) {
	p := gpu(t, 0)
	stop, err := p.Watch(time.Millisecond)
	require.NoError(t, err)
	d, err := p.Open()
	require.NoError(t, err)
	r, err := d.Reserve(100*device.MiB, 0)
	require.NoError(t, err)
	// for a sample; on a machine that takes none meanwhile the figure at the end stands in
	time.Sleep(300 * time.Millisecond)
	seen, err := stop()
	require.NoError(t, err)
	assert.Equal(t, "cuda", seen.Source)
	assert.Zero(t, seen.Before)
	assert.Equal(t, 100*device.MiB, seen.Peak)
	assert.Equal(t, 100*device.MiB, seen.After)
	assert.GreaterOrEqual(t, seen.Samples, 2)
	require.NoError(t, d.Release(r.Addr))
	require.NoError(t, d.Close())
}

func TestWrongPlaces(t *testing.T) {
	for _, text := range []string{"", "cuda:x", "cuda:0:0", "sim:no-card", "gpu", "simulated"} {
		_, err := replay.ParseTarget(text)
		if assert.Error(t, err, text) {
			assert.True(t, strings.Contains(err.Error(), text), err)
		}
	}
}
