package formats_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
)

func TestMinimallocLivesBecomeEvents(t *testing.T) {
	const want = `# name=t
# time=moments of the problem, shown as nanoseconds
# not_in_file=streams, times in seconds, the order of what begins at the same time
a 0 4 tag=b1 t=0
a 2 4 align=8 tag=b3 t=0
f 0 t=3
a 1 4 t=3
f 1 t=9
f 2 t=9
`
	require.Equal(t, want, lines(t, read(t, "id,lower,upper,size,alignment\nb1,0,3,4,1\n1,3,9,4,0\n\nb3,0,9,4,8\n")))
	require.Equal(t, want, lines(t,
		read(t, "alignment,size,begin,end,buffer_id\r\n1,4,0,2,b1\r\n1,4,3,8,1\r\n8,4,0,8,b3\r\n")),
		"an end is the last moment of a life")
	tr := read(t, "id,lower,upper,size,gaps,offset\n0,0,9,4,2-3 5-6,77\n1,0,9,4,,78\n")
	gaps, _ := tr.Header.Get("gaps_ignored")
	require.Equal(t, "1", gaps)
}

func TestMinimallocRefuses(t *testing.T) {
	for rows, want := range map[string]string{
		"0,0,1":                      "t:2: 3 columns: want 4",
		"0,0,1,2,3":                  "t:2: 5 columns: want 4",
		"0,0,1,4\n0,1,-2,4":          `t:3: upper "-2": want a number from 0 to 9223372036854775807`,
		"0,x,1,4":                    `t:2: lower "x": want a number from 0 to 9223372036854775807`,
		"0,0,1,18446744073709551616": `t:2: size "18446744073709551616": want a number from 0 to 9223372036854775807`,
		"0,0,1,9223372036854775808":  `t:2: size "9223372036854775808": want a number from 0 to 9223372036854775807`,
		"0,5,5,4":                    "t:2: a buffer must end after it begins",
	} {
		_, err := formats.Read(strings.NewReader("id,lower,upper,size\n"+rows), "t", formats.Options{})
		require.EqualError(t, err, want)
	}
	_, err := formats.Read(strings.NewReader("id,lower,upper,size,alignment\n0,0,1,2,3\n"), "t", formats.Options{})
	require.EqualError(t, err, "t:2: alignment 3: want a power of two")
}

// TestMinimallocKeepsOverlaps writes random traces as problems and compares who lives together.
func TestMinimallocKeepsOverlaps(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		b := trace.NewBuilder(trace.Header{})
		var live []uint64
		for id := range uint64(30) {
			require.NoError(t, b.Alloc(id, 1+4*4, 0))
			live = append(live, id)
			for len(live) > 0 && rng.IntN(2) == 0 {
				i := rng.IntN(len(live))
				require.NoError(t, b.Free(live[i]))
				live = append(live[:i], live[i+1:]...)
			}
		}
		tr := b.Trace()
		var text bytes.Buffer
		require.NoError(t, formats.WriteMinimalloc(&text, tr))
		require.Equal(t, overlaps(tr), overlaps(read(t, text.String())), "seed %d:\n%s", seed, &text)
	}
}

// overlaps returns which pairs of ids are live together.
func overlaps(tr *trace.Trace) map[[2]uint64]bool {
	pairs := map[[2]uint64]bool{}
	live := map[uint64]bool{}
	for _, e := range tr.Events {
		if e.Kind == trace.Free {
			delete(live, e.ID)
			continue
		}
		for other := range live {
			pairs[[2]uint64{min(other, e.ID), max(other, e.ID)}] = true
		}
		live[e.ID] = true
	}
	return pairs
}

func TestMinimallocIsWrittenInItsOwnForm(t *testing.T) {
	tr := read(t, "live 7 100\na 1 5 align=256\nf 7\nmark x\na 7 6 stream=3\nf 1\n")
	var text bytes.Buffer
	require.NoError(t, formats.WriteMinimalloc(&text, tr))
	require.Equal(t, "id,lower,upper,size,alignment\n0,0,1,100,1\n1,0,2,5,256\n2,1,2,6,1\n", text.String())
	text.Reset()
	require.NoError(t, formats.WriteMinimalloc(&text, read(t, "# nothing")))
	require.Equal(t, "id,lower,upper,size\n", text.String())
}
