package verify_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/verify"
)

// wrongText is the trace of the rows of wrongFiles with requests of their own.
const wrongText = "live 0 700\nlive 1 3145728\nlive 2 2097152\na 3 512\n"

// wrongHead is the file of addresses up to the last allocation.
var wrongHead, _, _ = strings.Cut(smallAddr, "alloc,4")

var wrongFiles = []struct {
	name, requests string
	from, to       string // a part of the address file and its replacement; without from, the whole file
	want           string
}{
	{"empty", smallCSV, "", "", "t.addr:1: want the header line what,seq,address,bytes"},
	{"another file", smallCSV, "", smallCSV, "t.addr:1: want the header line"},
	{"no gzip", smallCSV, "", "\x1f\x8b1234567890", "t.addr: gzip data is corrupt"},
	{"binary", smallCSV, "", "what,seq,address,bytes\n\x00", "t.addr:2: NUL byte"},
	{"too few columns", smallCSV, "alloc,1,4194304,3145728", "alloc,1,4194304",
		"t.addr:3: want 4 columns: what,seq,address,bytes"},
	{"an empty line", smallCSV, "alloc,1,", "\nalloc,1,", "t.addr:3: want 4 columns"},
	{"unknown word", smallCSV, "alloc,1,", "free,1,",
		`t.addr:3: what "free": want alloc, initial_segment, segment_alloc or segment_free`},
	{"an alloc without seq", smallCSV, "alloc,1,", "alloc,,", `t.addr:3: seq "": want a number`},
	{"negative seq", smallCSV, "alloc,1,", "alloc,-1,", `t.addr:3: seq "-1": want a number`},
	{"an initial segment with a seq", smallCSV, "segment,,4194304", "segment,0,4194304",
		`t.addr:5: seq "0": want no seq for an initial_segment`},
	{"address that is no number", smallCSV, ",4194304,3145728", ",0x400000,3145728",
		`t.addr:3: address "0x400000": want a number above 0`},
	{"address zero", smallCSV, ",4194304,3145728", ",0,3145728", `t.addr:3: address "0": want a number above 0`},
	{"no bytes", smallCSV, ",4194304,3145728", ",4194304,0", `t.addr:3: bytes "0": want a number above 0 and below 2^60`},
	{"too many bytes", smallCSV, ",4194304,3145728", ",4194304,1152921504606846976", "t.addr:3: bytes"},
	{"beyond 64 bits", smallCSV, ",33554432,12582912", ",18446744073709551615,12582912",
		"t.addr:9: bytes 12582912: the range ends beyond 64 bits"},
	{"other bytes than the trace", smallCSV, ",4194304,3145728", ",4194304,3145729",
		"t.addr:3: bytes 3145729: the trace has 3145728"},
	{"a row missing", smallCSV, "alloc,4,8388608,5000000\n", "",
		"t.addr:8: segment_alloc of seq 5: want the row of allocation 4, event 4"},
	{"an alloc of a free", smallCSV, "alloc,7,", "alloc,6,8388608,12000000\nalloc,7,",
		"t.addr:11: alloc of seq 6: want the row of allocation 6, event 7"},
	{"rows in disorder", smallCSV, "alloc,3,2097152,512\n", "alloc,4,8388608,5000000\nalloc,3,2097152,512\n",
		"t.addr:8: seq 3 after alloc of seq 4"},
	{"a row twice", smallCSV, "alloc,3,2097152,512\n", "alloc,3,2097152,512\nalloc,3,2097152,512\n",
		"t.addr:8: seq 3 after alloc of seq 3"},
	{"two segments for one", smallCSV, "segment_alloc,5", "segment_alloc,5,62914560,12582912\nsegment_alloc,5",
		"t.addr:10: want the row of allocation 5, which its segment precedes"},
	{"a segment without its allocation", smallCSV, "alloc,5,33554432,12000000\n", "",
		"t.addr:10: want the row of allocation 5, which its segment precedes"},
	{
		"a segment for a free",
		smallCSV,
		"alloc,7,4194304",
		"segment_alloc,6,62914560,2097152\nalloc,6,62914560,12000000\nalloc,7,4194304",
		"t.addr:11: segment_alloc of seq 6: the event is not an allocation",
	},
	{"cut off", smallCSV, "", wrongHead, "t.addr:8: the file ends before the row of allocation 4, event 4"},
	{"cut off behind a segment", smallCSV, "", wrongHead + "alloc,4,8388608,5000000\nsegment_alloc,5,33554432,12582912\n",
		"t.addr:10: the file ends before the row of allocation 5, event 5"},
	{
		"events that are not there",
		smallCSV,
		"alloc,9,2098688,100\n",
		"alloc,9,2098688,100\nsegment_free,11,4194304,20971520\n",
		"t.addr:14: segment_free of seq 11: the trace has 10 events",
	},
	{"a block in no segment", smallCSV, "alloc,1,4194304", "alloc,1,62914560",
		"t.addr:3: allocation 1 of 3MiB at 0x3c00000 lies in no segment"},
	{"a block over the end of its segment", smallCSV, "alloc,4,8388608", "alloc,4,23068672",
		"t.addr:8: allocation 4 of 4.77MiB at 0x1600000 lies in no segment"},
	{"blocks that overlap", smallCSV, "alloc,4,8388608", "alloc,4,5242880",
		"t.addr:8: allocation 4 of 4.77MiB at 0x500000 overlaps allocation 1 at 0x400000"},
	{"a block over the next", smallCSV, "alloc,4,8388608", "alloc,4,18874368",
		"t.addr:8: allocation 4 of 4.77MiB at 0x1200000 overlaps allocation 2 at 0x1400000"},
	{"blocks at one place", smallCSV, "alloc,3,2097152", "alloc,3,2097664",
		"t.addr:7: allocation 3 of 512B at 0x200200 overlaps allocation 0 at 0x200200"},
	{"segments that overlap", smallCSV, "segment,,2097152,2097152", "segment,,2097152,2097153",
		"t.addr:6: segment of 2.00MiB at 0x200000 overlaps another one"},
	{"a segment in another", smallCSV, "segment_alloc,5,33554432", "segment_alloc,5,8388608",
		"t.addr:9: segment of 12MiB at 0x800000 overlaps another one"},
	{"a segment that is not held", smallCSV, "segment_free,9,33554432", "segment_free,9,62914560",
		"t.addr:12: no segment of 12MiB at 0x3c00000 is held"},
	{"a segment of another size", smallCSV, "segment_free,9,33554432,12582912", "segment_free,9,33554432,2097152",
		"t.addr:12: no segment of 2MiB at 0x2000000 is held"},
	{"a segment in use", smallCSV, "segment_free,9,33554432,12582912", "segment_free,9,4194304,20971520",
		"t.addr:12: segment at 0x400000 goes back with allocation 6 live in it"},
	{"blocks of two streams live in a segment", wrongText + "live 5 7 stream=1\n", "", smallAddr,
		"live at the start must precede"},
	{"streams that share a segment", strings.Replace(smallCSV, "7,a,6,4000000,0", "7,a,6,4000000,1", 1), "what", "what",
		"t.addr:11: allocation 6 of stream 1 at 0x400000: the segment there is of stream 0"},
	{"opening blocks of two streams", strings.Replace(smallCSV, "2,a,2,2097152,0", "2,a,2,2097152,1", 1), "what", "what",
		"t.addr:4: allocation 2 of stream 1: the segment at 0x400000 is of stream 0"},
	{
		"live blocks behind the beginning",
		strings.Replace(smallCSV, "9,a,7,100,0,7,x", "9,a,7,100,0,7,preexisting:x", 1),
		"what",
		"what",
		"small: event 9: allocation 7 was live when the recording began, but follows its beginning",
	},
	{
		"nothing recorded",
		"live 0 700\nf 0\n",
		"",
		"what,seq,address,bytes\nalloc,0,2097152,700\ninitial_segment,,2097152,2097152\n",
		"t: no allocation was made while the recording ran",
	},
	{"no bytes asked for", wrongText + "a 4 0\n", "what", "what", "t: event 4: an allocation of 0 bytes has no address"},
	{"a private pool", wrongText + "pool begin 3\n", "what", "what", "t: event 4: pool-begin events cannot be verified"},
}

func TestWrongFiles(t *testing.T) {
	for _, c := range wrongFiles {
		t.Run(c.name, func(t *testing.T) {
			addresses := c.to
			if c.from != "" {
				require.Contains(t, smallAddr, c.from)
				addresses = strings.Replace(smallAddr, c.from, c.to, 1)
			}
			_, err := read(c.requests, addresses)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestTruncatedCompression(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte(smallAddr))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	_, err = read(smallCSV, b.String())
	require.NoError(t, err)
	_, err = read(smallCSV, b.String()[:b.Len()-9])
	require.ErrorContains(t, err, "gzip data is truncated")
}

// spoilt is the model with something amiss.
type spoilt struct {
	*model
	how string
}

var errBroken = errors.New("broken")

func (s spoilt) Alloc(r alloc.Request) (alloc.Block, error) {
	switch {
	case s.how == "refuses":
		return alloc.Block{}, alloc.ErrInvalidRequest
	case s.how == "fails":
		return alloc.Block{}, errBroken
	case s.how == "trims" && r.Size == 100:
		_ = s.src.Release(4 << 20)
	case s.how == "trims nothing" && r.Size == 100:
		_ = s.src.Release(5 << 20)
	case s.how == "gives up" && r.Size == 12000000:
		if _, err := s.src.Reserve(1, 1); err == nil {
			return alloc.Block{}, errBroken
		}
		if err := s.src.Release(4 << 20); err != nil {
			return alloc.Block{}, err
		}
	}
	return s.model.Alloc(r)
}

func (s spoilt) Free(a device.Addr) error {
	if s.how == "trims when it frees" {
		return s.src.Release(a)
	}
	return s.model.Free(a)
}

func (s spoilt) ReleaseSegment(a device.Addr) error {
	if s.how == "keeps segments" {
		return errBroken
	}
	return s.model.ReleaseSegment(a)
}

func (s spoilt) Check() error {
	if s.how == "is wrong inside" {
		return errBroken
	}
	return nil
}

func TestStrategiesThatMisbehave(t *testing.T) {
	h, err := read(smallCSV, smallAddr)
	require.NoError(t, err)
	for _, c := range []struct {
		how, want string // an error, or the first disagreement
		predicted int
	}{
		{"refuses", "event 3, allocation 3 of 512 bytes on stream 0: predicted a refusal, recorded the block at 0x200000", 0},
		{"trims", "event 9, allocation 7 of 100 bytes on stream 0: predicted release of the segment at 0x400000, " +
			"recorded the block at 0x200600", 4},
		{"trims nothing", "", 5},
		{"gives up", "event 5, allocation 5 of 12000000 bytes on stream 0: predicted a new segment of 1 bytes, recorded a " +
			"new segment of 12582912 bytes and the block at 0x2000000", 4},
		{"fails", "event 3: alloc at 0x200000: broken", -1},
		{"trims when it frees", "event 6: free at 0x400000: the strategy reserved or released memory without a request: " +
			"release of the segment at 0x400000", -1},
		{"keeps segments", "event 9: segment_free at 0x2000000: broken", -1},
		{"is wrong inside", "at the end: broken", -1},
		{"does not start", "on the recorded heap: broken", -1},
	} {
		t.Run(c.how, func(t *testing.T) {
			res, err := verify.Run(h, &verify.Target{
				Open: func(src device.Source, opening []alloc.Chunk) (verify.Seedable, error) {
					if c.how == "does not start" {
						return nil, errBroken
					}
					m, err := openModel(src, opening)
					return spoilt{m.(*model), c.how}, err
				}})
			if c.predicted < 0 {
				require.EqualError(t, err, c.want)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.predicted, res.Predicted)
			if c.want != "" {
				require.Equal(t, c.want, res.First.String())
			}
		})
	}
}

func TestVerificationStopsAfterManyDisagreements(t *testing.T) {
	var requests, addresses strings.Builder
	requests.WriteString("seq,op,id,bytes,stream,time_us,tag\n")
	addresses.WriteString("what,seq,address,bytes\ninitial_segment,,2097152,2097152\n")
	for i := range 1100 { // from the upper end downwards
		fmt.Fprintf(&requests, "%d,a,%d,512,0,0,\n", i, i)
		fmt.Fprintf(&addresses, "alloc,%d,%d,512\n", i, 4<<20-512*(i+1))
	}
	h, err := read(requests.String(), addresses.String())
	require.NoError(t, err)
	res := predict(t, h)
	require.Equal(t, "event 999: 1000 disagreements", res.Stopped)
	require.Equal(t, 1100, res.Allocs)
	require.Zero(t, res.Predicted)
}

func FuzzRead(f *testing.F) {
	f.Add(smallCSV, smallAddr)
	f.Add("live 0 700 stream=3\na 1 5\nf 0\ndone 0\n",
		"what,seq,address,bytes\nalloc,0,2097152,700\ninitial_segment,,2097152,2097152\nalloc,1,2098176,5\n")
	f.Fuzz(func(t *testing.T, requests, addresses string) {
		h, err := read(requests, addresses)
		if err != nil {
			return
		}
		// What can be told of memory can be verified, whatever comes of it.
		if _, err := verify.Run(h, &plain); err != nil {
			t.Fatal(err)
		}
	})
}

func TestVerificationStopsWhereTheHeapIsRefused(t *testing.T) {
	h, err := read(smallCSV, strings.Replace(smallAddr, "alloc,4,8388608", "alloc,4,9437185", 1))
	require.NoError(t, err)
	opened := 0
	res, err := verify.Run(h, &verify.Target{
		Open: func(src device.Source, opening []alloc.Chunk) (verify.Seedable, error) {
			if opened++; opened > 1 {
				return nil, errBroken
			}
			return openModel(src, opening)
		}})
	require.NoError(t, err)
	require.Equal(t, "event 4: broken", res.Stopped)
	require.Equal(t, 1, res.Predicted)
	require.NotNil(t, res.First)
}
