package trace_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace"
)

// sleeping is a program whose weights and cache sleep in turn.
const sleeping = `live 1 5 tag=weights
a 2 6 tag=cache
a 3 7
pause cache
pause weights
a 4 8 tag=work
f 3
resume cache
f 2
pause
resume weights
f 1
resume
f 4
`

// TestSleepCountsPausedBlocks computes the bytes asleep after each event by hand.
func TestSleepCountsPausedBlocks(t *testing.T) {
	tr := read(t, sleeping)
	var s trace.Sleep
	var got []int
	for i := range tr.Events {
		require.NoError(t, s.Check(tr, &tr.Events[i]))
		s.Step(&tr.Events[i])
		got = append(got, int(s.Asleep()))
	}
	require.Equal(t, []int{0, 0, 0, 6, 11, 11, 11, 5, 5, 13, 8, 8, 0, 0}, got)
	var b strings.Builder
	require.NoError(t, trace.Write(&b, tr))
	require.Contains(t, b.String(), sleeping)
}

// TestCutRestoresPauses cuts between any two events. The part has as many bytes asleep after each.
func TestCutRestoresPauses(t *testing.T) {
	tr := read(t, sleeping)
	var whole trace.Sleep
	for first := range tr.Events {
		part, err := trace.Cut(tr, trace.Span{First: first, End: len(tr.Events)}, 0)
		require.NoError(t, err)
		var s trace.Sleep
		opening := len(part.Events) - (len(tr.Events) - first)
		for i := range part.Events[:opening] {
			s.Step(&part.Events[i])
		}
		require.Equal(t, whole.Asleep(), s.Asleep(), "event %d", first)
		whole.Step(&tr.Events[first])
	}
	part, err := trace.Cut(tr, trace.Span{First: 11, End: 12}, 0)
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, trace.Write(&b, part))
	require.Contains(t, b.String(), "live 1 5 tag=weights\nlive 4 8 tag=work\npause\nresume weights\nf 1\n")
}

func TestWrongPausesAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"pause x\na 1 5 tag=x":               `t.trace:2: a request while tag "x" is paused`,
		"pause\na 1 5":                       `t.trace:2: a request while every block without a tag of its own is paused`,
		"pause x\nrefused 5 tag=x":           `t.trace:2: a request while tag "x" is paused`,
		"a 1 5 tag=x\npause x\nf 1":          `t.trace:3: id 1 sleeps: tag "x" is paused`,
		"a 1 5\npause\nresume x\nuse 1 2":    `t.trace:4: id 1 sleeps: every block without a tag of its own is paused`,
		"pause x\npause x":                   `t.trace:2: tag "x" is paused already`,
		"pause\npause x":                     `t.trace:2: tag "x" is paused already`,
		"pause\npause":                       `t.trace:2: everything is paused already`,
		"resume":                             `t.trace:1: nothing is paused`,
		"pause x\nresume x\nresume":          `t.trace:3: nothing is paused`,
		"pause x\nresume y":                  `t.trace:2: tag "y" is not paused`,
		"pause x y":                          `t.trace:1: unexpected "y" behind "pause"`,
		"a 1 5 tag=x\nf 1\npause x\nf 1":     `t.trace:4: id 1 is freed already`,
		"pause x\nf 9":                       `t.trace:2: id 9 was never allocated`,
		"pause x\npause\nresume x\nresume x": `t.trace:4: tag "x" is not paused`,
	} {
		_, err := trace.Read(strings.NewReader(text+"\n"), "t.trace", trace.Options{})
		require.EqualError(t, err, want, text)
	}
}
