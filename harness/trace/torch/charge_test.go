package torch

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/internal/budget"
)

// endless is a reader of a beginning and one text that repeats, up to a number of bytes. If it
// counts, the zeros in the text are replaced by a counter.
type endless struct {
	next, text []byte
	left       int
	count      bool
	at         run // the zeros
	n          uint32
}

// Read implements io.Reader.
func (e *endless) Read(b []byte) (int, error) {
	if len(e.next) == 0 {
		if e.left <= 0 {
			return 0, io.EOF
		}
		e.next = e.text
		if e.count {
			for i := range e.at.n {
				e.text[e.at.first+i] = '0' + byte(e.n>>(5*i)&31)
			}
			e.n++
		}
		e.left -= len(e.text)
	}
	n := copy(b, e.next)
	e.next = e.next[n:]
	return n, nil
}

// Parts of the bombs: the keys lie in the memo.
const (
	bombKeys = "\x80\x04](" + "\x8c\x06action\x94\x8c\x04addr\x94\x8c\x04size\x94\x8c\x05state\x94\x8c\x08inactive\x94" +
		"\x8c\x0atotal_size\x94\x8c\x06blocks\x94\x8c\x07address\x94\x8c\x08filename\x94\x8c\x04name\x94\x8c\x04line\x94e"
	bombEntry   = "}(h\x00h\x02h\x01K\x01h\x02K\x01u"
	bombBlock   = "}(h\x02K\x01h\x03h\x04u"
	bombSegment = "}(h\x05K\x01h\x06]h\x07K\x01u"
)

// bombs are files without an end, one for each table that grows.
var bombs = map[string]endless{
	"numbers on the stack": {next: []byte("\x80\x04]("), text: []byte("K\x01")},
	"none in lists":        {next: []byte("\x80\x04]"), text: []byte("Na")},
	"empty lists":          {next: []byte("\x80\x04]"), text: []byte("]a")},
	"open lists":           {next: []byte("\x80\x04"), text: []byte("]")},
	"lists of one":         {next: []byte("\x80\x04]"), text: []byte("]Naa")},
	"open dictionaries":    {next: []byte("\x80\x04"), text: []byte("}")},
	"a dictionary":         {next: []byte("\x80\x04}"), text: []byte("NNs")},
	"tuples":               {next: []byte("\x80\x04]"), text: []byte("N\x85a")},
	"nine in a list":       {next: []byte("\x80\x04]"), text: []byte("](NNNNNNNNNea")},
	"wide lists":           {next: []byte("\x80\x04]"), text: []byte("](" + strings.Repeat("K\x01", 100) + "ea")},
	"places of the memo":   {next: []byte("\x80\x04]"), text: []byte("\x94")},
	"strings":              {next: []byte("\x80\x04]("), text: []byte("\x8c\x0c________0000"), count: true},
	"pairs":                {next: []byte("\x80\x04]("), text: []byte("J0000J0000\x86"), count: true},
	"histories":            {next: []byte(bombKeys), text: []byte("](" + bombEntry + "ea")},
	"histories of 17":      {next: []byte(bombKeys), text: []byte("](" + strings.Repeat(bombEntry, 17) + "ea")},
	"copied entries": {next: []byte(bombKeys + "](" + strings.Repeat(bombEntry+"\x94", 20)),
		text: []byte("h\x0bh\x0d")},
	"blocks":      {next: []byte(bombKeys + "]("), text: []byte(bombBlock)},
	"block lists": {next: []byte(bombKeys), text: []byte("](" + bombBlock + "ea")},
	"segments":    {next: []byte(bombKeys + "]("), text: []byte(bombSegment)},
	"frames": {next: []byte(bombKeys + "]("), text: []byte("}(h\x08h\x08h\x09h\x09h\x0aJ0000u"),
		count: true},
	"ignored keys": {next: []byte(bombKeys + "]("),
		text: []byte(bombEntry[:len(bombEntry)-1] + "\x8c\x0c________0000Nu"), count: true},
	"lists of JSON":   {next: []byte("["), text: []byte("[],")},
	"numbers of JSON": {next: []byte("["), text: []byte("1,")},
	"strings of JSON": {next: []byte("["), text: []byte(`"________0000",`), count: true},
}

// TestBombsAreCharged reads files without an end under a low limit. The charged memory must be at
// least the heap's, or else the effective limit would be higher.
func TestBombsAreCharged(t *testing.T) {
	const limit = 24 << 20
	for name, bomb := range bombs {
		t.Run(name, func(t *testing.T) {
			bomb.text = []byte(string(bomb.text))
			bomb.at = run{uint32(bytes.Index(bomb.text, []byte("0000"))), 4}
			bomb.left = 2 * limit
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			m := newMachine(new(Snapshot), budget.New(limit))
			var err error
			if strings.HasSuffix(name, "JSON") {
				err = m.readJSON(&bomb)
			} else {
				err = m.readPickle(&bomb)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			charged := m.rest() + m.rowBytes + m.memo.bytes
			live := int(after.HeapAlloc) - int(before.HeapAlloc)
			t.Logf("%d MiB live, %d MiB charged, %d MiB in all: %v", live>>20, charged>>20,
				(after.TotalAlloc-before.TotalAlloc)>>20, err)
			require.EqualError(t, err, "takes more than 24MiB of memory")
			require.LessOrEqual(t, live, charged+charged/8+1<<20)
			require.LessOrEqual(t, charged, 2*limit)
			require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(10*limit))
			runtime.KeepAlive(m)
		})
	}
}

// TestLongJSONIsRefused reads a string that does not end.
func TestLongJSONIsRefused(t *testing.T) {
	bomb := endless{next: []byte(`{"segments": ["`), text: []byte(strings.Repeat("x", 1<<10)), left: 1 << 30}
	_, err := Read(&bomb, nil)
	require.ErrorContains(t, err, "snapshot: at byte 13: a token of more than 16777216 bytes, want shorter strings")
	require.Greater(t, bomb.left, 1<<29)
}
