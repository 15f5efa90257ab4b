package remat_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// program is a random program. Sizes and times grow by whole numbers with the batch size.
type program struct{ seed uint64 }

// at returns its log at a batch size.
func (p program) at(t *testing.T, batch int) *remat.Schedule {
	t.Helper()
	r := workload.NewRand(p.seed)
	figure := func() int64 { return int64(r.Below(1000)) + int64(r.Below(50))*int64(batch) }
	var b remat.Builder
	last, err := b.Constant(device.Size(r.Below(1000)))
	require.NoError(t, err)
	for range 20 {
		c := remat.Call{Name: "f", Cost: figure(), Workspace: device.Size(figure()), Args: []remat.Tensor{last}}
		for range 1 + r.Below(3) {
			o := remat.Output{Size: device.Size(figure()), Alias: remat.NoAlias}
			if r.Below(4) == 0 {
				o = remat.Output{Alias: 0}
			}
			c.Outputs = append(c.Outputs, o)
		}
		first, err := b.Call(c)
		require.NoError(t, err)
		require.NoError(t, b.Release(last))
		for i := range c.Outputs[1:] {
			require.NoError(t, b.Release(first+1+remat.Tensor(i)))
		}
		last = first
	}
	require.NoError(t, b.Pin(last))
	return b.Schedule()
}

func TestBatchesFollowProgramsThatGrowLinearly(t *testing.T) {
	for seed := range uint64(20) {
		p := program{seed}
		b, err := remat.NewBatches([]remat.Recording{{Batch: 12, Schedule: p.at(t, 12)}, {Batch: 4, Schedule: p.at(t, 4)},
			{Batch: 7, Schedule: p.at(t, 7)}})
		require.NoError(t, err)
		for _, batch := range []int{1, 4, 5, 12, 500} {
			s, err := b.At(batch)
			require.NoError(t, err)
			require.Equal(t, p.at(t, batch), s, "batch size %d", batch)
		}
		errors, err := b.Deviations()
		require.NoError(t, err)
		require.Equal(t, []remat.Deviation{{Batch: 7}}, errors)
	}
}

// single returns a log of one operator.
func single(t *testing.T, name string, size device.Size, cost int64) *remat.Schedule {
	t.Helper()
	var b remat.Builder
	_, err := b.Call(remat.Call{Name: name, Cost: cost, Outputs: []remat.Output{{Size: size, Alias: remat.NoAlias}}})
	require.NoError(t, err)
	return b.Schedule()
}

func TestBatchesRoundUpAndDoNotFollowFallingLines(t *testing.T) {
	b, err := remat.NewBatches([]remat.Recording{{4, single(t, "f", 10, 90)}, {7, single(t, "f", 20, 80)}})
	require.NoError(t, err)
	for batch, want := range map[int][2]int64{1: {0, 90}, 3: {7, 90}, 4: {10, 90}, 5: {14, 87}, 6: {17, 84}, 7: {20, 80},
		8: {24, 80}, 1000: {3330, 80}} {
		s, err := b.At(batch)
		require.NoError(t, err)
		require.Equal(t, want, [2]int64{int64(s.Storages[0].Size), s.Ops[0].Cost}, "batch size %d", batch)
		require.Equal(t, s.Storages[0].Size, s.Ops[0].OutputBytes)
		require.Equal(t, s.Ops[0].Cost, s.Cost)
	}
}

func TestBatchesStateTheirError(t *testing.T) {
	b, err := remat.NewBatches([]remat.Recording{{4, single(t, "f", 10, 100)}, {5, single(t, "f", 10, 160)},
		{8, single(t, "f", 30, 300)}})
	require.NoError(t, err)
	errors, err := b.Deviations()
	require.NoError(t, err)
	require.Equal(t, []remat.Deviation{{Batch: 5, Bytes: 0.5, Time: 1. / 16, Step: -1. / 16}}, errors)
}

func TestBatchesRefuseOtherPrograms(t *testing.T) {
	log := single(t, "f", 10, 10)
	longer := func(name string, view bool) *remat.Schedule {
		var b remat.Builder
		a, err := b.Call(remat.Call{Name: "f", Cost: 1, Outputs: []remat.Output{{Size: 1, Alias: remat.NoAlias}}})
		require.NoError(t, err)
		o := remat.Output{Size: 1, Alias: remat.NoAlias}
		if view {
			o = remat.Output{Alias: 0}
		}
		_, err = b.Call(remat.Call{Name: name, Cost: 1, Args: []remat.Tensor{a}, Outputs: []remat.Output{o}})
		require.NoError(t, err)
		return b.Schedule()
	}
	for name, c := range map[string]struct {
		of   []remat.Recording
		want string
	}{
		"one":   {[]remat.Recording{{4, log}}, "one recording: want logs of at least two batch sizes"},
		"twice": {[]remat.Recording{{4, log}, {8, log}, {4, log}}, "batch size 4 is given twice"},
		"zero":  {[]remat.Recording{{0, log}, {8, log}}, "batch size 0: want 1 to 1048576"},
		"large": {[]remat.Recording{{4, log}, {1 << 21, log}}, "batch size 2097152: want 1 to 1048576"},
		"name": {[]remat.Recording{{4, log}, {8, single(t, "g", 10, 10)}}, `after 0 operators, one has operator "f" and the ` +
			`other operator "g"`},
		"longer": {[]remat.Recording{{4, longer("g", true)}, {8, log}}, `after 1 operators, one has operator "g" and ` +
			`the other the end`},
		"view": {[]remat.Recording{{4, longer("g", true)}, {8, longer("g", false)}},
			`after 1 operators, operator "g" has other inputs or outputs`},
	} {
		_, err := remat.NewBatches(c.of)
		require.ErrorContains(t, err, c.want, name)
	}
}

func TestBatchesRefuseSizesThatNoRunCanSum(t *testing.T) {
	b, err := remat.NewBatches([]remat.Recording{{4, single(t, "f", 1<<40, 1)}, {5, single(t, "f", 1<<42, 1)}})
	require.NoError(t, err)
	_, err = b.At(100_000)
	require.NoError(t, err)
	_, err = b.At(remat.MaxBatch)
	require.ErrorContains(t, err, "batch size 1048576: sizes or times exceed")
}
