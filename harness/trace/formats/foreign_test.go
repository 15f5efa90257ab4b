package formats_test

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace/formats"
)

// zipped returns a zip archive with empty entries.
func zipped(t *testing.T, names ...string) string {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, name := range names {
		_, err := z.Create(name)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	return out.String()
}

func TestKnownFilesWithoutATraceAreNamed(t *testing.T) {
	const weights = ", not a trace: want a memory snapshot, as torch.cuda.memory._dump_snapshot writes it, or a log of " +
		"allocations"
	for name, c := range map[string]struct{ content, want string }{
		"checkpoint": {zipped(t, "model/data.pkl", "model/version"),
			"is a checkpoint of PyTorch (torch.save)" + weights},
		"newer checkpoint": {zipped(t, "model/.format_version", "model/data.pkl"),
			"is a checkpoint of PyTorch (torch.save)" + weights},
		"old checkpoint": {"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.",
			"is a checkpoint of PyTorch (torch.save)" + weights},
		"pickled tensors": {"\x80\x02}q\x00X\x01\x00\x00\x00wq\x01ctorch._utils\n_rebuild_tensor_v2\nq\x02.",
			"is a checkpoint of PyTorch (torch.save)" + weights},
		"pickle 4": {"\x80\x04\x95\x10}\x94\x8c\x01w\x94\x8c\x0ctorch._utils\x94\x8c\x12_rebuild_tensor_v2\x94\x93.",
			"is a checkpoint of PyTorch (torch.save)" + weights},
		"safetensors": {"\x40\x00\x00\x00\x00\x00\x00\x00" +
			`{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}         `,
			"is a file of weights (safetensors)" + weights},
		"GGUF":  {"GGUF\x03\x00\x00\x00", "is a file of weights (GGUF)" + weights},
		"NumPy": {"\x93NUMPY\x01\x00", "is arrays of NumPy" + weights},
		"npz":   {zipped(t, "a.npy", "b.npy"), "is arrays of NumPy" + weights},
		"HDF5":  {"\x89HDF\r\n\x1a\n", "is an HDF5 file" + weights},
		"zip":   {zipped(t, "run.pickle"), "is a zip archive, not a trace: want one of the files in it"},
		"tar": {strings.Repeat("\x00", 257) + "ustar\x0000", "is a tar archive, not a trace: want one of the " +
			"files in it"},
		"page": {"\n<!DOCTYPE html>\n<html>", "is an HTML page, not a trace: vramyard view opens pages that " +
			"--html wrote"},
		"result": {"{\n  \"schema\": \"vramyard-compare/1\",", "is a result of vramyard compare, not a trace: results " +
			"are for vramyard diff, plot and view"},
		"program":  {"\x7fELF\x02\x01\x01", "is a program or library (ELF), not a trace: want one of text, csv, "},
		"database": {"SQLite format 3\x00", "is a database of SQLite, not a trace: want one of text, "},
		"PDF":      {"%PDF-1.7\n", "is a PDF file, not a trace: want one of text, "},
		"picture":  {"\x89PNG\r\n\x1a\n", "is a picture, not a trace: want one of text, "},
	} {
		_, err := formats.Read(strings.NewReader(c.content), "model.pt", formats.Options{})
		require.ErrorContains(t, err, "model.pt: "+c.want, name)
		_, _, err = formats.ReadSnapshot(strings.NewReader(c.content), "model.pt", formats.Options{})
		require.ErrorContains(t, err, "model.pt: "+c.want, name)
		path := filepath.Join(t.TempDir(), "model.pt")
		require.NoError(t, os.WriteFile(path, []byte(c.content), 0o600))
		require.ErrorContains(t, formats.Recognize(path, formats.Options{}), c.want, name)
	}
}
