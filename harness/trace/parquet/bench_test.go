package parquet_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/parquet"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// benched returns a yardstick workload of two million events.
func benched(b *testing.B) *trace.Trace {
	shape, err := workload.Lookup("w1")
	require.NoError(b, err)
	p := shape.Default
	p.Live = 10_000
	w, err := shape.New(p)
	require.NoError(b, err)
	tr, err := w.Trace()
	require.NoError(b, err)
	return tr
}

// report sets time and bytes of an event.
func report(b *testing.B, tr *trace.Trace, bytes int) {
	n := float64(len(tr.Events))
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/event")
	b.ReportMetric(float64(bytes)/n, "bytes/event")
	b.ReportMetric(0, "ns/op")
	b.ReportAllocs()
}

func BenchmarkWrite(b *testing.B) {
	tr := benched(b)
	forms := map[string]func(io.Writer) error{
		"parquet": func(w io.Writer) error { return parquet.Write(w, tr) },
		"csv.gz": func(w io.Writer) error {
			z := gzip.NewWriter(w)
			if err := trace.WriteCSV(z, tr); err != nil {
				return err
			}
			return z.Close()
		},
	}
	for _, name := range []string{"parquet", "csv.gz"} {
		b.Run("form="+name, func(b *testing.B) {
			var out bytes.Buffer
			for b.Loop() {
				out.Reset()
				require.NoError(b, forms[name](&out))
			}
			report(b, tr, out.Len())
		})
	}
}

// BenchmarkRead reads into memory, and walks, which is what a replay of a long trace does.
func BenchmarkRead(b *testing.B) {
	tr := benched(b)
	data := written(b, tr)
	var csv bytes.Buffer
	z := gzip.NewWriter(&csv)
	require.NoError(b, trace.WriteCSV(z, tr))
	require.NoError(b, z.Close())
	b.Run("form=parquet/whole", func(b *testing.B) {
		for b.Loop() {
			_, err := open(b, data).Trace()
			require.NoError(b, err)
		}
		report(b, tr, len(data))
	})
	b.Run("form=parquet/walk", func(b *testing.B) {
		f := open(b, data)
		for b.Loop() {
			require.NoError(b, f.Batches(func([]trace.Event) error { return nil }))
		}
		report(b, tr, len(data))
	})
	b.Run("form=csv.gz/whole", func(b *testing.B) {
		for b.Loop() {
			_, err := trace.Read(bytes.NewReader(csv.Bytes()), "x", trace.Options{})
			require.NoError(b, err)
		}
		report(b, tr, csv.Len())
	})
}
