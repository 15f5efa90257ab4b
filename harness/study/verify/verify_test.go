package verify_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/verify"
	"github.com/vramyard/vramyard/harness/trace"
)

// The small history: two blocks live in a segment of each kind when the recording begins; a block
// whose rest of 1 MiB only a later allocation shows (allocation 1, which 4 follows); a segment
// taken, and given back.
const (
	smallCSV = `# format=memtrace-1
# name=small
# mark,3,recording starts
seq,op,id,bytes,stream,time_us,tag
0,a,0,700,0,0,preexisting:unknown
1,a,1,3145728,0,0,preexisting:unknown
2,a,2,2097152,0,0,preexisting:unknown
3,a,3,512,0,1,x
4,a,4,5000000,0,2,x
5,a,5,12000000,0,3,x
6,f,1,3145728,0,4,
7,a,6,4000000,0,5,x
8,f,5,12000000,0,6,
9,a,7,100,0,7,x
`
	smallAddr = `what,seq,address,bytes
alloc,0,2097664,700
alloc,1,4194304,3145728
alloc,2,20971520,2097152
initial_segment,,4194304,20971520
initial_segment,,2097152,2097152
alloc,3,2097152,512
alloc,4,8388608,5000000
segment_alloc,5,33554432,12582912
alloc,5,33554432,12000000
alloc,7,4194304,4000000
segment_free,9,33554432,12582912
alloc,9,2098688,100
`
)

// read reads a history from text.
func read(requests, addresses string) (*verify.History, error) {
	tr, err := trace.Read(strings.NewReader(requests), "t.csv", trace.Options{})
	if err != nil {
		return nil, err
	}
	lines, err := trace.NewLines(strings.NewReader(addresses), "t.addr", nil)
	if err != nil {
		return nil, err
	}
	defer lines.Close()
	return verify.Read(tr, lines)
}

// predict runs the model over a history.
func predict(t *testing.T, h *verify.History) *verify.Result {
	t.Helper()
	res, err := verify.Run(h, &plain)
	require.NoError(t, err)
	return res
}

func TestSmallHistoryIsPredicted(t *testing.T) {
	h, err := read(smallCSV, smallAddr)
	require.NoError(t, err)
	require.Equal(t, []verify.Segment{
		{Region: device.Region{Addr: 2 << 20, Size: 2 << 20}}, {Region: device.Region{Addr: 4 << 20, Size: 20 << 20}},
	}, h.Segments)
	require.Len(t, h.Blocks, 3)
	require.Len(t, h.Steps, 9)
	var opening []alloc.Chunk
	target := plain
	target.Open = func(src device.Source, chunks []alloc.Chunk) (verify.Seedable, error) {
		opening = chunks
		return openModel(src, chunks)
	}
	res, err := verify.Run(h, &target)
	require.NoError(t, err)
	require.True(t, res.All(), "%v", res.First)
	require.Equal(t, 5, res.Allocs)
	require.Equal(t, 1, res.Segments)
	require.Equal(t, 1, res.PredictedSegments)
	require.EqualValues(t, 34<<20, res.Recorded)
	require.EqualValues(t, 34<<20, res.Reserved)
	require.EqualValues(t, 22<<20, res.OpeningBytes)
	chunk := func(region, addr device.Addr, size, requested device.Size, class int32) alloc.Chunk {
		c := alloc.Chunk{Region: region, Addr: addr, Size: size, Requested: requested, Class: class}
		if requested > 0 {
			c.State = alloc.Live
		}
		return c
	}
	require.Equal(t, []alloc.Chunk{
		chunk(2<<20, 2<<20, 512, 0, power.ClassSmall),
		chunk(2<<20, 2<<20+512, 1024, 700, power.ClassSmall),
		chunk(2<<20, 2<<20+1536, 2<<20-1536, 0, power.ClassSmall),
		chunk(4<<20, 4<<20, 4<<20, 3145728, power.ClassLarge),
		chunk(4<<20, 8<<20, 12<<20, 0, power.ClassLarge),
		chunk(4<<20, 20<<20, 2<<20, 2097152, power.ClassLarge),
		chunk(4<<20, 22<<20, 2<<20, 0, power.ClassLarge),
	}, opening)
}

func TestMispredictionsAreCountedAndSurvived(t *testing.T) {
	for _, c := range []struct {
		name, from, to string // a line of the file of addresses, planted wrong
		predicted      int
		want           string // the first disagreement
	}{
		{"another hole", "alloc,3,2097152,512\n", "alloc,3,2099712,512\n", 3, // and the last one finds the better hole now
			"event 3, allocation 3 of 512 bytes on stream 0: predicted the block at 0x200000, recorded the block at 0x200a00"},
		{"another end of a hole", "alloc,4,8388608,5000000\n", "alloc,4,9437184,5000000\n", 4,
			"event 4, allocation 4 of 5000000 bytes on stream 0: predicted the block at 0x700000, recorded the block " +
				"at 0x900000"},
		{"a segment too large", "segment_alloc,5,33554432,12582912\n", "segment_alloc,5,33554432,20971520\n", 4,
			"event 5, allocation 5 of 12000000 bytes on stream 0: predicted a new segment of 12582912 bytes, recorded a new " +
				"segment of 20971520 bytes and the block at 0x2000000"},
		{"a segment not needed", "alloc,7,4194304,4000000\n", "segment_alloc,7,62914560,20971520\nalloc,7,62914560,4000000\n",
			4,
			"event 7, allocation 6 of 4000000 bytes on stream 0: predicted the block at 0x400000, recorded a new segment of " +
				"20971520 bytes and the block at 0x3c00000"},
		{"a block beside the start of its segment", "alloc,5,33554432,12000000\n", "alloc,5,33554944,12000000\n", 4,
			"event 5, allocation 5 of 12000000 bytes on stream 0: predicted a new segment of 12582912 bytes and the block at " +
				"0x2000000, recorded a new segment of 12582912 bytes and the block at 0x2000200"},
		{"a small block among large ones", "alloc,9,2098688,1048576\n", "alloc,9,13388800,1048576\n", 4,
			"event 9, allocation 7 of 1048576 bytes on stream 0: predicted a new segment of 2097152 bytes, recorded the block " +
				"at 0xcc4c00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			requests, addresses := smallCSV, smallAddr
			switch c.name {
			case "a segment too large":
				addresses = strings.Replace(addresses, "segment_free,9,33554432,12582912", "segment_free,9,33554432,20971520", 1)
			case "a small block among large ones": // they fill the segment
				swap := strings.NewReplacer(",3,512,", ",3,1048576,", ",7,100,", ",7,1048576,",
					"alloc,3,2097152,512", "alloc,3,2098688,1048576", "alloc,9,2098688,100", "alloc,9,2098688,1048576")
				requests, addresses = swap.Replace(requests), swap.Replace(addresses)
			}
			require.Contains(t, addresses, c.from)
			h, err := read(requests, strings.Replace(addresses, c.from, c.to, 1))
			require.NoError(t, err)
			res := predict(t, h)
			require.NotNil(t, res.First)
			require.Equal(t, c.want, res.First.String())
			require.Equal(t, c.predicted, res.Predicted)
			require.Empty(t, res.Stopped)
		})
	}
}

func TestStreamsOfOpeningSegments(t *testing.T) {
	// What was live does not know its stream; what follows does.
	requests := strings.NewReplacer("4,a,4,5000000,0", "4,a,4,5000000,7", "7,a,6,4000000,0",
		"7,a,6,4000000,7").Replace(smallCSV)
	h, err := read(requests, smallAddr)
	require.NoError(t, err)
	require.EqualValues(t, 0, h.Segments[0].Stream)
	require.EqualValues(t, 7, h.Segments[1].Stream)
	require.True(t, predict(t, h).All())

	requests = strings.NewReplacer("1,a,1,3145728,0", "1,a,1,3145728,5", "2,a,2,2097152,0", "2,a,2,2097152,5",
		"6,f,1,3145728,0", "6,f,1,3145728,5").Replace(smallCSV)
	requests, _, _ = strings.Cut(requests, "4,a,4")
	addresses, _, _ := strings.Cut(smallAddr, "alloc,4")
	h, err = read(requests, addresses)
	require.NoError(t, err)
	require.EqualValues(t, 5, h.Segments[1].Stream, "nothing else is known")
}

func TestDelayedFreesTakeEffectAtTheirCompletion(t *testing.T) {
	const requests = "live 0 700\nmark begin\na 1 600\nuse 1 2\nf 1\na 2 600\ndone 1\nf 0\nrefused 9\na 3 600\n"
	h, err := read(requests, `what,seq,address,bytes
alloc,0,2097152,700
initial_segment,,2097152,2097152
alloc,1,2098176,600
alloc,4,2099200,600
alloc,8,2097152,600
`)
	require.NoError(t, err)
	require.True(t, predict(t, h).All())
}

func TestSettingsOfTheTargetShowInTheOpeningState(t *testing.T) {
	h, err := read("live 0 1500000\nlive 1 30000000\na 2 1500000\n", `what,seq,address,bytes
alloc,0,2097152,1500000
alloc,1,62914560,30000000
initial_segment,,2097152,20971520
initial_segment,,62914560,41943040
alloc,2,4194304,1500000
`)
	require.NoError(t, err)
	sizes := func(target verify.Target) (list []device.Size) {
		target.Open = func(src device.Source, chunks []alloc.Chunk) (verify.Seedable, error) {
			if list == nil {
				for _, c := range chunks {
					list = append(list, c.Size)
				}
			}
			return openModel(src, chunks)
		}
		_, err := verify.Run(h, &target)
		require.NoError(t, err)
		return list
	}
	large := device.Size(30000128)
	require.Equal(t, []device.Size{2 << 20, 18 << 20, large, 41943040 - large}, sizes(verify.Target{}))
	require.Equal(t, []device.Size{2 << 20, 18 << 20, 41943040}, sizes(verify.Target{Unsplit: 25 << 20}))
	double := func(n device.Size) device.Size { return 4 << 20 }
	require.Equal(t, []device.Size{4 << 20, 16 << 20, 4 << 20, 36 << 20}, sizes(verify.Target{Round: double}))
}

func TestWords(t *testing.T) {
	require.Equal(t, "segment_free", verify.SegmentFree.String())
	require.Equal(t, "invalid", verify.Kind(9).String())
}
