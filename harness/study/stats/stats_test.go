package stats_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/stats"
)

// row is a run that completed with a minimum capacity and other figures derived from it.
func row(trace int, strategy string, least device.Size) stats.Row {
	return stats.Row{
		Run:      stats.Run{Trace: fmt.Sprint("t", trace), TraceSHA256: fmt.Sprintf("%064d", trace)},
		Strategy: strategy, MinCapacity: &least, Probes: 3, PeakReserved: least, Starts: true, DeviceCalls: 1,
		DeviceTime: uint64(least) * 10, NsPerOp: new(50.5),
	}
}

// failed is a run that completes on no device.
func failed(trace int, strategy string) stats.Row {
	r := row(trace, strategy, 7)
	r.MinCapacity, r.OOMs = nil, 1
	return r
}

func compared(t *testing.T, rows ...stats.Row) *stats.Result {
	t.Helper()
	a, b, err := stats.Pick([]stats.Table{{File: "x", Rows: rows}}, "a", "b")
	require.NoError(t, err)
	r, err := stats.Compare(a, b, stats.Options{})
	require.NoError(t, err)
	return r
}

// TestFiguresAreThoseOfSciPy compares with numpy and scipy.stats.binomtest, and the interval with a
// bootstrap written in Python over the same random numbers: the percentiles
// norm.sf(t.ppf(0.975, 7) * sqrt(8/7)) of the means of 100,000 samples. scipy.stats.bootstrap with
// 200,000 samples of its own has 0.9475 to 1.0002.
func TestFiguresAreThoseOfSciPy(t *testing.T) {
	var rows []stats.Row
	for i, p := range [][2]device.Size{{100, 98}, {200, 190}, {300, 303}, {400, 400}, {512, 480}, {1000, 930}, {77, 78},
		{4096, 4000}} {
		rows = append(rows, row(i, "a", p[0]), row(i, "b", p[1]))
	}
	a, b, err := stats.Pick([]stats.Table{{Rows: rows}}, "", "")
	require.NoError(t, err)
	for seed, ends := range map[uint64][2]float64{
		0: {0.9472987637064035, 1.000223554665035}, 7: {0.9474877284111932, 1.000545712327294},
	} {
		r, err := stats.Compare(a, b, stats.Options{Seed: seed})
		require.NoError(t, err)
		f := r.Figures[0]
		require.InEpsilon(t, ends[0], *f.Low, 1e-8)
		require.InEpsilon(t, ends[1], *f.High, 1e-8)
		require.InEpsilon(t, 0.9741563147184551, *f.Mean, 1e-8)
		require.InEpsilon(t, 0.9782797401561579, *f.Median, 1e-8)
		require.InEpsilon(t, 0.453125, f.SignTest, 1e-8)
		require.Equal(t, []int{8, 5, 1, 2}, []int{f.Traces, f.Less, f.Equal, f.More})
		require.Equal(t, stats.Extreme{Trace: "t5", Ratio: 0.93}, *f.Least)
		require.Equal(t, "t6", f.Most.Trace)
		require.Equal(t, stats.Unclear, f.Verdict)
		require.Equal(t, stats.Equal, r.Figures[2].Verdict, "every run makes one call")
		require.Len(t, r.Figures, 4, "times are not compared unless asked")
	}
}

// swapped has the verdict for swapped sides.
var swapped = map[stats.Verdict]stats.Verdict{
	stats.ALower: stats.BLower, stats.BLower: stats.ALower, stats.Equal: stats.Equal, stats.Unclear: stats.Unclear,
	stats.TooFew: stats.TooFew,
}

// TestSidesCanBeSwapped draws tables with failures, ties and gaps: swapped sides in another order
// give the inverse.
func TestSidesCanBeSwapped(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var tables [2]stats.Table
		for i := range 3 + rng.IntN(20) {
			for side := range tables {
				r := row(i, "s", device.Size(100+rng.IntN(6)))
				switch rng.IntN(12) {
				case 0:
					r = failed(i, "s")
				case 1:
					r.MinCapacity, r.Probes = nil, 0
				case 2:
					r.DeviceTime = 0
				case 3:
					r.Capacity = r.PeakReserved
				case 4 + side:
					r.MinCapacity, r.Capacity = nil, r.PeakReserved
				case 6:
					continue
				}
				tables[side].Rows = append(tables[side].Rows, r)
			}
		}
		both := func(x, y stats.Table) (*stats.Result, error) {
			a, b, err := stats.Pick([]stats.Table{x, y}, "", "")
			require.NoError(t, err)
			return stats.Compare(a, b, stats.Options{Seed: seed, Time: true})
		}
		r, err := both(tables[0], tables[1])
		rng.Shuffle(len(tables[0].Rows), func(i, j int) {
			rows := tables[0].Rows
			rows[i], rows[j] = rows[j], rows[i]
		})
		s, errS := both(tables[1], tables[0])
		if err != nil {
			require.Error(t, errS)
			continue
		}
		require.Len(t, r.Figures, 5)
		require.ElementsMatch(t, r.OnlyA, s.OnlyB)
		require.Equal(t, len(tables[0].Rows), r.Traces+len(r.OnlyA))
		for i, f := range r.Figures {
			g := s.Figures[i]
			require.Equal(t, []int{f.Traces, f.Less, f.Equal, f.More, f.FailedA, f.FailedB, f.Failed, f.Ratios, f.CompletesA,
				f.CompletesB, f.WholeA, f.WholeB, f.Unknown}, []int{g.Traces, g.More, g.Equal, g.Less, g.FailedB, g.FailedA,
				g.Failed, g.Ratios, g.CompletesB, g.CompletesA, g.WholeB, g.WholeA, g.Unknown})
			left := f.FailedA + f.FailedB + f.Failed + f.WholeA + f.WholeB - f.CompletesA - f.CompletesB
			for _, p := range f.Pairs {
				if p.WholeA && p.WholeB {
					left--
				}
			}
			require.Equal(t, r.Traces, f.Traces+left+f.Unknown, "no trace counts twice")
			require.Equal(t, f.Traces, f.Less+f.Equal+f.More)
			require.Equal(t, f.SignTest, g.SignTest)
			require.Equal(t, swapped[f.Verdict], g.Verdict)
			require.Equal(t, f.Ratios >= stats.LeastTraces, f.Low != nil)
			if f.Traces == 0 {
				require.Equal(t, stats.TooFew, f.Verdict)
			}
			if f.Low != nil {
				require.InEpsilon(t, 1, *f.Low**g.High, 1e-8)
				require.InEpsilon(t, 1, *f.Mean**g.Mean, 1e-8)
				require.LessOrEqual(t, *f.Low, *f.Mean)
				require.LessOrEqual(t, *f.Mean, *f.High)
			}
		}
	}
}

// TestFailuresAreLosses has a side that fails: in the minimum capacity it loses those traces, and
// is never the lower one. The other figures are compared where both complete.
func TestFailuresAreLosses(t *testing.T) {
	var rows []stats.Row
	for i := range 10 {
		rows = append(rows, row(i, "a", 1000), row(i, "b", 900))
	}
	require.Equal(t, stats.BLower, compared(t, rows...).Figures[0].Verdict)
	r := compared(t, append(rows, row(10, "a", 1000), failed(10, "b"), failed(11, "a"), failed(11, "b"))...)
	for _, f := range r.Figures {
		require.Equal(t, []int{0, 1, 1, 10}, []int{f.FailedA, f.FailedB, f.Failed, f.Ratios}, f.Figure)
	}
	reserved := r.Figures[1]
	require.Equal(t, []int{10, 10, 0, 0}, []int{reserved.Traces, reserved.Less, reserved.Equal, reserved.More})
	require.Equal(t, stats.BLower, reserved.Verdict)
	broken := stats.Row{Run: row(10, "b", 1).Run, Strategy: "b", Failed: new("exhausted")}
	require.Equal(t, 1, compared(t, append(rows, row(10, "a", 1000), broken)...).Figures[0].FailedB)
	f := r.Figures[0]
	require.Equal(t, []int{11, 10, 0, 1, 1}, []int{f.Traces, f.Less, f.Equal, f.More, f.CompletesA})
	require.Equal(t, stats.Unclear, f.Verdict)
	require.True(t, f.Pairs[10].FailedB)

	// Without any ratio the failures decide, if they are many enough.
	rows = nil
	for i := range 6 {
		rows = append(rows, failed(i, "a"), row(i, "b", 900))
		want := stats.TooFew
		if i == 5 {
			want = stats.BLower
		}
		r := compared(t, rows...)
		require.Equal(t, want, r.Figures[0].Verdict)
		require.Equal(t, i+1, r.Figures[0].CompletesB)
		require.Equal(t, []int{0, 0}, []int{r.Figures[2].Traces, r.Figures[2].Less}, "a failure wins no device calls")
	}
}

// TestFailuresCountByPair has one trace on two devices: on the first both fail, on the second A.
func TestFailuresCountByPair(t *testing.T) {
	var rows []stats.Row
	for _, r := range []stats.Row{failed(0, "a"), failed(0, "b"), failed(0, "a"), row(0, "b", 100)} {
		r.Device, r.Search = new(fmt.Sprint("card ", len(rows)/2)), new("full")
		rows = append(rows, r)
	}
	for i, f := range compared(t, rows...).Figures {
		require.Equal(t, []int{1, 1, 0, 0}, []int{f.Failed, f.FailedA, f.FailedB, f.Equal}, f.Figure)
		require.Equal(t, i == 0, f.Traces == 1, f.Figure)
	}
}

// TestAWholeDeviceIsNoPeak has a strategy that reserves its whole device, up to a page: it counts
// only on the smallest device on which it completes.
func TestAWholeDeviceIsNoPeak(t *testing.T) {
	const card = 80 * device.GiB
	a, b := row(0, "a", 10*device.GiB), row(0, "b", 9*device.GiB)
	a.Capacity, b.Capacity = card, card
	for _, c := range []struct {
		reserved, capacity device.Size
		minimum            *device.Size
		whole              int
	}{
		{card, card, b.MinCapacity, 1}, {card, card, nil, 1}, {card, card + 100, b.MinCapacity, 1},
		{card - 2*device.MiB, card, b.MinCapacity, 0}, {card, card, new(card), 0}, {card, 0, b.MinCapacity, 0},
		{100, 200, nil, 1},
	} {
		b.PeakReserved, b.Capacity, b.MinCapacity = c.reserved, c.capacity, c.minimum
		r := compared(t, a, b)
		f := r.Figures[1]
		require.Equal(t, []int{0, c.whole, 1 - c.whole, 0}, []int{f.WholeA, f.WholeB, f.Traces, f.Unknown}, "%+v", c)
		require.Equal(t, c.whole == 1, f.Pairs[0].WholeB)
		require.Equal(t, 1, r.Figures[2].Traces, "its calls count")
	}
}

// TestDevicesOfOneTraceCountOnce has eight devices of two traces: they are no sixteen observations.
func TestDevicesOfOneTraceCountOnce(t *testing.T) {
	var rows []stats.Row
	for i := range 16 {
		for _, s := range []string{"a", "b"} {
			r := row(i%2, s, map[string]device.Size{"a": 1000, "b": 900}[s])
			r.Device, r.Search = new(fmt.Sprint("card", i/2)), new("full")
			if i < 2 && s == "b" {
				r.MinCapacity = new(900 + 300*device.Size(i))
			}
			rows = append(rows, r)
		}
	}
	r := compared(t, rows...)
	f := r.Figures[0]
	require.Equal(t, 2, r.Traces)
	require.Len(t, f.Pairs, 16)
	require.Equal(t, stats.TooFew, f.Verdict)
	require.InEpsilon(t, 0.9, f.Least.Ratio, 1e-8)
	require.Equal(t, "t1", f.Most.Trace)
	require.Equal(t, []int{2, 2}, []int{f.Less, f.Ratios})

	other := rows[1]
	other.Device = nil
	a, b, err := stats.Pick([]stats.Table{{File: "x", Rows: rows}, {File: "y", Rows: []stats.Row{other}}}, "a", "b")
	require.NoError(t, err)
	_, err = stats.Compare(a, b, stats.Options{})
	require.EqualError(t, err, `x: two runs of a on t0, sha256 000000000000: want one: choose a device with --device, `+
		`such as "card0" or "card1"`)
}

func TestRowsAreSelected(t *testing.T) {
	tables := func() []stats.Table {
		x, y := stats.Table{File: "x"}, stats.Table{File: "y", Rows: []stats.Row{row(0, "a", 1)}}
		for i := range 4 {
			r := row(0, "b", device.Size(1+i))
			r.Device, r.Search = new(fmt.Sprint("card", i/2)), new([]string{"full", "quick"}[i%2])
			x.Rows = append(x.Rows, r)
		}
		return []stats.Table{x, y}
	}
	for _, c := range []struct{ device, search, want string }{
		{"", "", `x: two runs of b on t0, sha256 000000000000: want one: choose a search with --search, such as "full" or "quick"`},
		{"", "full", `x: two runs of b on t0, sha256 000000000000: want one: choose a device with --device, such as ` +
			`"card0" or "card1"`},
		{"card1", "quick", ""},
		{"card2", "", `--device: x has no device "card2": did you mean "card0"? want one of card0, card1`},
		{"card0", "none", `--search: x has no search "none": want one of full, quick`},
	} {
		all := tables()
		err := stats.Select(all, c.device, c.search)
		if err == nil {
			a, b, errPick := stats.Pick(all, "b", "a")
			require.NoError(t, errPick)
			var r *stats.Result
			if r, err = stats.Compare(a, b, stats.Options{}); err == nil {
				require.Equal(t, 4.0, *r.Figures[0].Pairs[0].A, "card1, quick")
			}
		}
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, c.want)
	}
	require.EqualError(t, stats.Select(tables()[1:], "card0", ""),
		`--device "card0": y has no column device: want a table of sweep merge`)
}

// TestEqualTracesAreRefused has two traces of equal content, and one trace twice without a hash.
func TestEqualTracesAreRefused(t *testing.T) {
	refused := func(first, second stats.Row) string {
		a, b, err := stats.Pick([]stats.Table{{File: "x", Rows: []stats.Row{first, second, row(0, "b", 1)}}}, "a", "b")
		require.NoError(t, err)
		_, err = stats.Compare(a, b, stats.Options{})
		require.Error(t, err)
		return err.Error()
	}
	copied := row(0, "a", 1)
	copied.Trace = "copy"
	require.Equal(t, "x: two runs of a on t0 and copy, which are the same trace, sha256 000000000000: want one for each "+
		"trace, device and search", refused(row(0, "a", 1), copied))
	generated := row(0, "a", 1)
	generated.TraceSHA256 = ""
	require.Equal(t, "x: two runs of a on t0: want one for each trace, device and search", refused(generated, generated))
}

// TestTimesMustBeKnown asks for times that one table does not have.
func TestTimesMustBeKnown(t *testing.T) {
	untimed := row(0, "b", 1)
	untimed.NsPerOp = nil
	a, b, err := stats.Pick([]stats.Table{{File: "x", Rows: []stats.Row{row(0, "a", 1)}}, {File: "y",
		Rows: []stats.Row{untimed}}}, "", "")
	require.NoError(t, err)
	_, err = stats.Compare(a, b, stats.Options{Time: true})
	require.EqualError(t, err, "--time: y has no column ns_per_op: want a table of compare; "+
		"\"sweep merge --times\" writes times to a table of their own")
	_, err = stats.Compare(a, b, stats.Options{})
	require.NoError(t, err)
}

func TestSidesAreChosen(t *testing.T) {
	x := stats.Table{File: "x", Rows: []stats.Row{row(0, "bfc", 1), row(0, "tlsf", 1)}}
	y := stats.Table{File: "y", Rows: []stats.Row{row(0, "bfc", 1), row(0, "tlsf", 1), row(0, "direct", 1)}}
	one := stats.Table{File: "z", Rows: []stats.Row{row(1, "slab", 1)}}
	for _, c := range []struct {
		tables     []stats.Table
		a, b, want string
	}{
		{[]stats.Table{x}, "", "", "bfc x tlsf x"},
		{[]stats.Table{x}, "tlsf", "bfc", "tlsf x bfc x"},
		{[]stats.Table{x, y}, "tlsf", "", "tlsf x tlsf y"},
		{[]stats.Table{x, one}, "tlsf", "", "tlsf x slab z"},
		{[]stats.Table{y}, "", "", "y has 3 strategies: choose one with --a: bfc, tlsf, direct"},
		{[]stats.Table{y}, "tlsf", "", "y has 3 strategies: choose one with --b: bfc, tlsf, direct"},
		{[]stats.Table{x}, "bfx", "tlsf", `--a: x has no strategy "bfx": did you mean "bfc"? want one of bfc, tlsf`},
		{[]stats.Table{x}, "bfc", "bfc", "x: A and B are both the runs of bfc: want two strategies or two files"},
		{[]stats.Table{one}, "", "", "z: A and B are both the runs of slab: want two strategies or two files"},
		{[]stats.Table{{File: "e"}}, "", "", "e: no runs"},
	} {
		a, b, err := stats.Pick(c.tables, c.a, c.b)
		if err != nil {
			require.EqualError(t, err, c.want)
			continue
		}
		require.Equal(t, c.want, fmt.Sprint(a.Strategy, " ", a.File, " ", b.Strategy, " ", b.File))
	}
	a, b, err := stats.Pick([]stats.Table{x, one}, "bfc", "")
	require.NoError(t, err)
	_, err = stats.Compare(a, b, stats.Options{})
	require.EqualError(t, err, "no trace of bfc in x is one of slab in z: want traces with the same hash")
}
