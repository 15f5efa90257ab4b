package fileio_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/internal/fileio"
)

// xzHello is "hello\n" as xz writes it with a checksum of 64 bits.
const xzHello = "/Td6WFoAAATm1rRGAgAhARYAAAB0L+WjAQAFaGVsbG8KAAAApWCX8ZT2/eAAAR4GwS+kHR+2830BAAAAAARZWg=="

// xzHuge is the same with a window of 4 GiB.
const xzHuge = "/Td6WFoAAATm1rRGAgAhASgAAADmoBGzAQAFaGVsbG8KAAAApWCX8ZT2/eAAAR4GwS+kHR+2830BAAAAAARZWg=="

func packed(t *testing.T, text string) map[string][]byte {
	t.Helper()
	var gz, zst bytes.Buffer
	g := gzip.NewWriter(&gz)
	_, err := g.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, g.Close())
	z, err := zstd.NewWriter(&zst)
	require.NoError(t, err)
	_, err = z.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	x, err := base64.StdEncoding.DecodeString(xzHello)
	require.NoError(t, err)
	return map[string][]byte{"": []byte(text), "gzip": gz.Bytes(), "zstd": zst.Bytes(), "xz": x}
}

func TestCompressionIsDetectedByContent(t *testing.T) {
	for form, data := range packed(t, "hello\n") {
		s, err := fileio.NewReader(bytes.NewReader(data))
		require.NoError(t, err)
		head, err := s.Peek(100)
		require.NoError(t, err)
		require.Equal(t, "hello\n", string(head))
		text, err := io.ReadAll(s)
		require.NoError(t, err)
		require.Equal(t, "hello\n", string(text))
		require.Equal(t, form, s.Form())
		s.Close()
	}
	for _, text := range []string{"", "a", "\x1f", "\xfd7zXZ", "P\x2aM"} {
		s, err := fileio.NewReader(strings.NewReader(text))
		require.NoError(t, err)
		got, err := io.ReadAll(s)
		require.NoError(t, err)
		require.Equal(t, text, string(got))
	}
}

func TestBrokenDataNamesTheCompression(t *testing.T) {
	read := func(data []byte) error {
		s, err := fileio.NewReader(bytes.NewReader(data))
		if err == nil {
			_, err = io.ReadAll(s)
			s.Close()
		}
		return err
	}
	for form, data := range packed(t, "hello\n") {
		if form == "" {
			continue
		}
		for n := 6; n < len(data); n++ {
			require.EqualError(t, read(data[:n]), form+" data is truncated", "%d bytes", n)
		}
		for i := range data {
			bent := bytes.Clone(data)
			bent[i] ^= 0x10
			if err := read(bent); err != nil {
				require.Regexp(t, "^"+form+" data is (corrupt: .*|truncated)$", err.Error(), "byte %d", i)
			}
		}
	}
}

// TestLargeWindowIsRefused asks for 4 GiB to look back, in a file of a hundred bytes.
func TestLargeWindowIsRefused(t *testing.T) {
	data, err := base64.StdEncoding.DecodeString(xzHuge)
	require.NoError(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s, err := fileio.NewReader(bytes.NewReader(data))
	if err == nil {
		_, err = io.ReadAll(s)
		s.Close()
	}
	runtime.ReadMemStats(&after)
	require.ErrorContains(t, err, "xz data is corrupt: ")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
}
