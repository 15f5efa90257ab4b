package formats_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace/formats"
)

const (
	rmmHead    = "Thread,Time,Action,Pointer,Size,Stream\n"
	kinetoHead = `{"traceEvents":[{"name":"[memory]","ts":1,"args":`
)

func TestHostileFilesAreOneError(t *testing.T) {
	const anySize = "want a number from 0 to 18446744073709551615"
	for text, want := range map[string]string{
		"":                                       "t: empty file: want a trace",
		"\xff\xfea\x00 \x00":                     "t: is text in UTF-16: want UTF-8",
		"\xfe\xff\x00a\x00 ":                     "t: is text in UTF-16: want UTF-8",
		"\ufeff{\"traceEvents\":[1]}":            "t: byte 19: want an event",
		"\ufeff{\"traceEvents\":[":               "t: byte 19: JSON data is truncated",
		rmmHead:                                  "t: the log has no lines",
		rmmHead + "1,00:00:00.000000,free,0x1,1": "t:2: 5 columns: want 6",
		rmmHead + "1,00:00:00.000000,take,0x1,1,0":      `t:2: action "take": want allocate, free or allocate failure`,
		rmmHead + "1,00:00:00.000000,free,0x1,-1,0":     `t:2: size "-1": ` + anySize,
		rmmHead + "1,00:00:00.000000,free,0x1,1,x":      `t:2: stream "x": want a handle in hexadecimal`,
		rmmHead + "1,00:00:00.000000,free,1x1,1,0":      `t:2: pointer "1x1": want an address such as 0x7f0000000000, or (nil)`,
		rmmHead + "1,00:00:00.000000,allocate,0x0,1,0":  "t:2: an allocation needs an address",
		rmmHead + "1,25:00:00.000000,free,0x1,1,0":      `t:2: time "25:00:00.000000": want hh:mm:ss.microseconds, or seconds`,
		rmmHead + "1,00:00:00.0000,free,0x1,1,0":        `t:2: time "00:00:00.0000": want hh:mm:ss.microseconds, or seconds`,
		rmmHead + "1,NaN,free,0x1,1,0":                  `t:2: time "NaN": want hh:mm:ss.microseconds, or seconds`,
		rmmHead + "1,1e300,free,0x1,1,0":                `t:2: time "1e300": want hh:mm:ss.microseconds, or seconds`,
		rmmHead + "1,1,free,0x1,18446744073709551616,0": `t:2: size "18446744073709551616": ` + anySize,
		rmmOld + "Realloc,0,0x4,0,6,0,0,0,1,1,0":        `t:4: event type "Realloc": want Alloc or Free`,
		rmmOld + "Alloc,-1,0x4,0,6,0,0,0,1,1,0":         `t:4: device "-1": want its number`,

		`{"traceEvents":[]}`: "t: has no events about memory: the profiler records them with " +
			"profile_memory=True",
		`{"traceEvents":{}}`:           "t: byte 14: want the list of events",
		`{"traceEvents":[1]}`:          "t: byte 16: want an event",
		`{"traceEvents":[{"ph":"i"},`:  "t: byte 27: JSON data is truncated",
		`{"traceEvents":[{"ts":NaN}]}`: "t: byte 16: invalid character 'N' looking for beginning of value",
		`{"traceEvents":[]} {}`:        "t: byte 18: something follows the end of the data",
		kinetoHead + `1}]}`: "t: byte 16: args of [memory]: want an object with Device Type, Device " +
			"Id, Addr and Bytes",
		kinetoHead + `{"Device Type":1}}]}`:     `t: byte 16: Bytes "": want a whole number of at most 64 bits`,
		kinetoHead + `{"Bytes":1.5}}]}`:         `t: byte 16: Bytes "1.5": want a whole number of at most 64 bits`,
		kinetoHead + `{"Bytes":1,"Addr":-5}}]}`: `t: byte 16: key Addr is "-5": want an address`,
		kinetoHead + `{"Bytes":1,"Addr":5}}]}`:  `t: byte 16: Device Type "": want a whole number of at most 64 bits`,
		kinetoHead + `{"Bytes":18446744073709551616,"Addr":5}}]}`: `t: byte 16: Bytes "18446744073709551616": ` +
			`want a whole number of at most 64 bits`,
		`{"traceEvents":[{"name":"[OutOfMemory]","ts":1,"args":{"Bytes":-1}}]}`: "t: byte 16: key Bytes is -1: a request " +
			"is not negative",
		`{"traceEvents":[{"name":"[memory]","ts":1e999,"args":{}}]}`: `t: byte 16: ts "1e999": want microseconds`,
		`{"traceEvents":[{"name":"[memory]","ts":"NaN","args":{}}]}`: `t: byte 16: ts "NaN": want microseconds`,
		`{"schemaVersion":` + strings.Repeat("[", 5000):              "t: byte 1017: nested more than 1000 deep",

		`[[1,2],[[0],[1]]]`: "t: byte 1: want [time, action, bytes, category]; a timeline of sums per category cannot be " +
			"read; use the file that ends in .raw.json.gz",
		`[[1,2,3,9]]`:         "t: byte 1: category 9: want 0 to 7",
		`[[1,2,-3,1]]`:        "t: byte 1: action 2 with -3 bytes: want 1 or 2 with a size, 4 with a negative one, or 3",
		`[[1,9,3,1]]`:         "t: byte 1: action 9 with 3 bytes: want 1 or 2 with a size, 4 with a negative one, or 3",
		`[[-7,2,3,1]]`:        "t: byte 1: time -7: want nanoseconds, or -1",
		`[[1,2,3e99,1]]`:      `t: byte 1: bytes "3e99": want a whole number of at most 64 bits`,
		`[[1,2,3,1],[4,4,-3,`: "t: byte 19: JSON data is truncated",
		`[["x",2,3,1]]`:       "t: byte 1: want a list of numbers",

		"\x0a\x03gpu\x1a\x04\x08\x05\x10\x00": "t: byte 5: chunk of 0 bytes at 0x5",
		"\x0a\x03gpu\x1a\x7f\x08":             "t: byte 5: protobuf data is truncated",
		"\x0a\x03gpu\x12\x00":                 "t: has no chunks",
		"\x0a\x03gpu\x1a\x04\x08\x05\x10\x01\x1b": "t: byte 11: field with an unknown " +
			"wire type",
		"\x0a\x03gpu\x1a\x06\x08\x05\x10\x01\x18\x02": "t: byte 5: chunk of 1 bytes at 0x5 " +
			"holds a request of 2",
		"\x0a\x03gpu\x1a\x04\x08\x05\x10\x02\x1a\x04\x08\x06\x10\x01": "t: chunk at 0x6 overlaps the " +
			"one below it",
		"\x0a\x03gpu\x1a\x0c\x08\x05\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01": "t: byte 9: protobuf data is truncated",
		"\x0a\x03gpu\x1a\x0d\x08\x05\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01": "t: byte 5: chunk of -1 bytes at 0x5",
		"\x0a\x03gpu\x12\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f":         "t: has no chunks",
		"\x0a\x02\x08\x01":             "t: has no events MemoryAllocation and MemoryDeallocation",
		"\x0a\x02\x08\x01\x0a\xff\x01": "t: byte 4: protobuf data is truncated",
		"\x0a\x04\x08\x01\x1a\x09":     "t: byte 4: protobuf data is truncated",
	} {
		_, err := formats.Read(strings.NewReader(text), "t", formats.Options{})
		require.EqualError(t, err, want, "%.60q", text)
	}
}

// TestFilesMayNotBeEndless reads bombs: what a reader would have to hold is bounded, whatever the
// file claims to hold.
func TestFilesMayNotBeEndless(t *testing.T) {
	if testing.Short() {
		t.Skip("decompresses hundreds of megabytes")
	}
	for name, c := range map[string]struct{ head, piece, want string }{
		"one text":  {`{"schemaVersion":"`, strings.Repeat("x", 1<<20), "a value is longer than 16777216 bytes"},
		"one event": {`{"traceEvents":[{"x":[`, strings.Repeat("1,", 1<<19), "a value is longer than 16777216 bytes"},
	} {
		r, w := io.Pipe()
		go func() {
			z := gzip.NewWriter(w)
			_, err := z.Write([]byte(c.head))
			for i := 0; i < 64 && err == nil; i++ {
				_, err = z.Write([]byte(c.piece))
			}
			_ = w.Close() // the reader has its error, or the content
		}()
		_, err := formats.Read(r, "t", formats.Options{})
		_ = r.Close()
		require.ErrorContains(t, err, c.want, name)
	}
}

// fuzzSamples fuzzes from the samples of one format.
func fuzzSamples(f *testing.F, format string) {
	for _, path := range samples(f) {
		if strings.HasSuffix(path, "."+format) {
			data, err := os.ReadFile(path)
			require.NoError(f, err)
			f.Add(bytes.TrimSpace(data))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) { fuzz(t, data, "t") })
}

func FuzzRMM(f *testing.F)        { fuzzSamples(f, "rmm") }
func FuzzKineto(f *testing.F)     { fuzzSamples(f, "kineto") }
func FuzzTimeline(f *testing.F)   { fuzzSamples(f, "timeline") }
func FuzzMemoryDump(f *testing.F) { fuzzSamples(f, "memorydump") }
func FuzzXSpace(f *testing.F)     { fuzzSamples(f, "xspace") }
func FuzzSnapshot(f *testing.F)   { fuzzSamples(f, "snapshot") }
func FuzzMinimalloc(f *testing.F) { fuzzSamples(f, "minimalloc") }
