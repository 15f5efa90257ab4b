package trace_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/vramyard/vramyard/harness/trace"
)

// manyEvents is the size of the traces that benchmarks read.
const manyEvents = 500_000

// manyLines returns a CSV of that many events with a thousand allocations live, and the
// same trace as text.
func manyLines(b *testing.B) map[string][]byte {
	var csv strings.Builder
	csv.WriteString("seq,op,id,bytes,stream,time_us,tag\n")
	size := func(id int) int { return 512 * (1 + id*7919%4096) }
	id := 0
	for seq := range manyEvents {
		if seq < 1000 || seq%2 == 0 {
			fmt.Fprintf(&csv, "%d,a,%d,%d,0,%d,activation:aten::op%d\n", seq, id, size(id), 4*seq, id%50)
			id++
		} else {
			old := id - 500
			fmt.Fprintf(&csv, "%d,f,%d,%d,0,%d,\n", seq, old, size(old), 4*seq)
		}
	}
	tr, err := trace.Read(strings.NewReader(csv.String()), "t", trace.Options{})
	if err != nil {
		b.Fatal(err)
	}
	var text bytes.Buffer
	if err := trace.Write(&text, tr); err != nil {
		b.Fatal(err)
	}
	return map[string][]byte{
		"csv": []byte(csv.String()), "text": text.Bytes(), "csv.gz": gzipped(csv.String()), "csv.zst": zstded(csv.String()),
	}
}

func BenchmarkContentHash(b *testing.B) {
	t, err := trace.Read(bytes.NewReader(manyLines(b)["csv"]), "t.csv", trace.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		contentHash(b, t)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(t.Events)), "ns/event")
}

func BenchmarkRead(b *testing.B) {
	forms := manyLines(b)
	for _, form := range []string{"csv", "text", "csv.gz", "csv.zst"} {
		b.Run("form="+form, func(b *testing.B) {
			for b.Loop() {
				if _, err := trace.Read(bytes.NewReader(forms[form]), "t", trace.Options{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*manyEvents/b.Elapsed().Seconds(), "events/s")
		})
	}
}
