package page_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/show/page"
)

// answerOf is an answer to the script.
type answerOf struct {
	about map[string]json.RawMessage
	data  []byte
}

// read reads an array.
func (a *answerOf) read(t *testing.T, text []byte) (list []float64) {
	t.Helper()
	var r struct {
		T    string
		O, N int
	}
	require.NoError(t, json.Unmarshal(text, &r))
	take := func(v any) {
		_, err := binary.Decode(a.data[r.O:], binary.LittleEndian, v)
		require.NoError(t, err)
	}
	switch r.T {
	case "u8":
		for _, b := range a.data[r.O : r.O+r.N] {
			list = append(list, float64(b))
		}
	case "u16":
		v := make([]uint16, r.N)
		take(v)
		for _, x := range v {
			list = append(list, float64(x))
		}
	case "u32":
		v := make([]uint32, r.N)
		take(v)
		for _, x := range v {
			list = append(list, float64(x))
		}
	default:
		list = make([]float64, r.N)
		take(list)
	}
	return list
}

// TestBlocksComeBackAsTheyWere packs blocks of every width and reads them as the script does.
func TestBlocksComeBackAsTheyWere(t *testing.T) {
	const base = 0x7f0000000000
	space := &page.Space{Ranges: []page.Range{{Region: device.Region{Addr: base, Size: 1 << 44}}}, Bytes: 1 << 44}
	rng := rand.New(rand.NewPCG(5, 5))
	widths := map[string]bool{}
	for _, wide := range []int{0, 4, 12, 20, 40} {
		rects := make([]page.Rect, 500)
		for i := range rects {
			r := &rects[i]
			*r = page.Rect{
				Addr: device.Addr(base + 512*rng.Uint64N(1<<wide)), Size: device.Size(512 * (1 + rng.Uint64N(1<<wide))),
				ID:   rng.Uint64N(1 << wide),
				Born: uint32(rng.Uint64N(1 << min(wide, 31))), Tag: uint32(rng.IntN(1 << min(wide, 12))),
				Stream: uint16(rng.IntN(4)), Class: -1,
			}
			r.Requested = r.Size - device.Size(rng.Uint64N(uint64(r.Size)))
			r.Reclaimed = r.Born + 1 + uint32(rng.Uint64N(1<<min(wide, 31)))
			r.Freed = r.Reclaimed
			if wide > 12 && i%9 == 0 {
				r.Reclaimed, r.Freed = page.Never, page.Never
			}
			if wide > 20 && i%10 == 0 {
				r.Reclaimed = page.Never // freed, and a stream uses it to the end
			}
		}
		slices.SortFunc(rects, func(a, b page.Rect) int { return int(a.Born) - int(b.Born) })
		var b bytes.Buffer
		require.NoError(t, page.WriteTile(&b, space, rects, true, 1<<31, nil))
		n := binary.LittleEndian.Uint32(b.Bytes())
		var o struct{ Rects map[string]json.RawMessage }
		require.NoError(t, json.Unmarshal(b.Bytes()[4:4+n], &o))
		a := &answerOf{about: o.Rects, data: b.Bytes()[4+n:]}
		of := func(name string) []float64 {
			var c struct {
				By float64
				V  json.RawMessage
			}
			require.NoError(t, json.Unmarshal(a.about[name], &c))
			list := a.read(t, c.V)
			for i := range list {
				list[i] *= c.By
			}
			widths[regexp.MustCompile(`[uf]\d+`).FindString(string(c.V))] = true
			return list
		}
		y, size, loss, born, life, tail, tag, id := of("y"), of("size"), of("loss"), of("born"), of("life"), of("tail"),
			of("tag"), of("id")
		at := uint32(0)
		for i, r := range rects {
			at += uint32(born[i])
			dies := at + uint32(life[i])
			require.Equal(t, r, page.Rect{
				Addr: device.Addr(base + uint64(y[i])), Size: device.Size(size[i]), Requested: device.Size(size[i] - loss[i]),
				ID:   uint64(id[i]),
				Born: at, Reclaimed: dies, Freed: dies - uint32(tail[i]), Tag: uint32(tag[i]), Stream: r.Stream, Class: -1,
			})
		}
	}
	require.Len(t, widths, 4)
}
