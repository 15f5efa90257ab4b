package cli

import (
	"io"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/show/view"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/internal/budget"
)

// BenchmarkFirstPicture measures "vramyard view FILE" from the file to the bytes of the page with
// the first picture, without the cache: W1 of a million events, as a trace and as a snapshot of
// PyTorch.
func BenchmarkFirstPicture(b *testing.B) {
	dir := b.TempDir()
	parquet, pickle := filepath.Join(dir, "w1.parquet"), filepath.Join(dir, "w1.pickle")
	for _, words := range [][]string{
		{"trace", "gen", "w1", "--pairs", "499500", parquet},
		{"replay", "--strategy", "caching", "--snapshot", pickle, parquet},
	} {
		require.Equal(b, exitDone, run(b.Context(), everything, words, nil, io.Discard, io.Discard))
	}
	for _, file := range []string{parquet, pickle} {
		b.Run("file="+filepath.Base(file), func(b *testing.B) {
			f := viewFlags{catalogue: everything, cacheDir: "none", source: formats.Options{Memory: budget.Default}}
			require.NoError(b, f.settle([]string{file}))
			for b.Loop() {
				d, err := f.document(&cobra.Command{}, file)
				require.NoError(b, err)
				content, err := d.Make(b.Context(), view.NewProgress(nil))
				require.NoError(b, err)
				require.NoError(b, content.Close())
			}
		})
	}
}
