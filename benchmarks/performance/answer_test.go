package main

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// raceOf returns a race on W1 with the given times of tlsf by address, tlsf by reference and a peer
// at 1e3 and 1e4 live blocks.
func raceOf(times [2][3]float64) *figures {
	f := &figures{peers: peersFile{Commit: "c", Rounds: 1}}
	for i, t := range times {
		for j, r := range []peerRun{{Allocator: "tlsf", ByAddress: true}, {Allocator: "tlsf"}, {Allocator: "galloc"}} {
			r.Workload, r.Live, r.Min, r.Address = "w1", live[i], t[j], 1+float64(j)
			f.peers.Runs = append(f.peers.Runs, r)
		}
	}
	return f
}

func TestTheAnswerSaysWhoIsFastest(t *testing.T) {
	for _, c := range []struct {
		times [2][3]float64
		want  []string
	}{
		{[2][3]float64{{60, 50, 40}, {80, 60, 40}}, []string{"`galloc *` with 1e3 and 1e4 live blocks (40.0 and 40.0 ns)",
			"we lose at 1e3 and 1e4: the fastest of our strategies takes 1.25 to 1.50 times as long, in 0.67 times",
			"our fastest takes 1.50 to 2.00 times"}},
		{[2][3]float64{{60, 50, 40}, {30, 20, 40}}, []string{"`galloc *` with 1e3 live blocks (40.0 ns) and `tlsf *` with 1e4",
			"we lose at 1e3 and win at 1e4: "}},
		{[2][3]float64{{30, 20, 40}, {30, 20, 40}}, []string{"`tlsf *` with 1e3 and 1e4", "we win at every size: "}},
	} {
		f := raceOf(c.times)
		require.True(t, f.peers.sound())
		for _, want := range c.want {
			require.Contains(t, f.answer(), want)
		}
	}
}

func TestARaceWithoutUsOrPeersIsRefused(t *testing.T) {
	f := raceOf([2][3]float64{{60, 50, 40}, {80, 60, 40}})
	whole := f.peers.Runs
	f.peers.Runs = slices.Concat(whole[:2], whole[3:])
	require.False(t, f.peers.sound(), "no peer at 1e3")
	f.peers.Runs = whole[1:]
	require.False(t, f.peers.sound(), "none of ours by address at 1e3")
}
