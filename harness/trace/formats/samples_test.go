package formats_test

import (
	"bytes"
	"compress/gzip"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
)

var rewrite = flag.Bool("rewrite", false, "write the traces that the samples give; review the difference")

// samples returns the files of foreign formats in testdata.
func samples(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*")
	require.NoError(t, err)
	var list []string
	for _, f := range files {
		if filepath.Ext(f) != ".want" && filepath.Ext(f) != "" {
			list = append(list, f)
		}
	}
	require.NotEmpty(t, list)
	return list
}

// TestSamplesGiveTheirTraces reads every sample as it is and compressed. The ending of a sample is
// the name of its format.
func TestSamplesGiveTheirTraces(t *testing.T) {
	for _, path := range samples(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			tr, err := formats.Open(path, formats.Options{})
			require.NoError(t, err)
			require.Equal(t, filepath.Ext(path), "."+tr.Header.Format)
			var got bytes.Buffer
			require.NoError(t, trace.Write(&got, tr))
			if *rewrite {
				require.NoError(t, os.WriteFile(path+".want", got.Bytes(), 0o600))
			}
			want, err := os.ReadFile(path + ".want")
			require.NoError(t, err)
			require.Equal(t, string(want), got.String())

			plain, err := os.ReadFile(path)
			require.NoError(t, err)
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			_, err = z.Write(plain)
			require.NoError(t, err)
			require.NoError(t, z.Close())
			again, err := formats.Read(&packed, path, formats.Options{})
			require.NoError(t, err)
			require.Equal(t, tr, again)
		})
	}
}

// TestEveryFormatHasASample also holds the names to what Header.Format says.
func TestEveryFormatHasASample(t *testing.T) {
	have := map[string]bool{"text": true, "csv": true} // those of package trace
	for _, path := range samples(t) {
		have[strings.TrimPrefix(filepath.Ext(path), ".")] = true
	}
	for _, name := range formats.Names() {
		require.True(t, have[name], name)
	}
}

func TestPartIsChosenByName(t *testing.T) {
	for path, want := range map[string]int{"testdata/steps.kineto": 3, "testdata/step.xspace": 1} {
		tr, err := formats.Open(path, formats.Options{Part: "cpu"})
		require.NoError(t, err)
		require.Len(t, tr.Events, want)
		part, _ := tr.Header.Get("part")
		require.Equal(t, "cpu", part)
		left, _ := tr.Header.Get("parts_left_out")
		require.NotEmpty(t, left)
		_, err = formats.Open(path, formats.Options{Part: "gpu"})
		require.ErrorContains(t, err, path+`: has no part "gpu": want "`)
	}
	two := strings.ReplaceAll(rmmOld, "Free,0", "Free,1") + "Alloc,1,0x5,0,6,0,0,0,1,1,0\n"
	_, err := formats.Read(strings.NewReader(two), "t", formats.Options{})
	require.EqualError(t, err, `t: holds several parts, name one of them: "cuda:0" (1 events), "cuda:1" (2 events)`)
}

const rmmOld = "Event Type,Device ID,Address,Stream,Size (bytes),Free Memory,Total Memory,Current " +
	"Allocs,Start,End,Elapsed\nAlloc,0,0x4,0,6,0,0,0,1,1,0\nFree,0,0x4,0,6,0,0,0,1,1,0\n"

// TestBrokenCompressionIsNoFaultOfTheContent cuts a compressed file in the middle.
func TestBrokenCompressionIsNoFaultOfTheContent(t *testing.T) {
	for _, path := range samples(t) {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, err = z.Write(data)
		require.NoError(t, err)
		require.NoError(t, z.Close())
		_, err = formats.Read(bytes.NewReader(packed.Bytes()[:packed.Len()-9]), "t", formats.Options{})
		require.Regexp(t, `^t(:\d+)?: gzip data is truncated$`, err.Error(), path)
	}
}

// TestTruncatedSamplesAreErrors cuts every sample of a form that knows its end at every byte.
func TestTruncatedSamplesAreErrors(t *testing.T) {
	for _, path := range samples(t) {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		data = bytes.TrimRight(data, "\n")
		json := strings.HasSuffix(path, ".kineto") || strings.HasSuffix(path, ".timeline")
		for n := range data {
			_, err := formats.Read(bytes.NewReader(data[:n]), "t", formats.Options{})
			if err == nil {
				require.False(t, json && n > 0, "%s cut at %d", path, n)
				continue
			}
			require.Regexp(t, `^t(:\d+)?: .`, err.Error())
			require.NotContains(t, err.Error(), "\n")
		}
	}
}
