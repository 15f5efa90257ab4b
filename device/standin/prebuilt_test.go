package standin

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// prebuiltOf writes what Prebuild writes for a release, except the libraries.
func prebuiltOf(t *testing.T, dir, release string) (folder string) {
	t.Helper()
	f := wheelFacts(t, release)
	r, _, err := f.recipe()
	require.NoError(t, err)
	name, err := r.key()
	require.NoError(t, err)
	text, err := json.Marshal(f)
	require.NoError(t, err)
	folder = filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(folder, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(folder, factsFile), text, 0o600))
	return folder
}

// TestPrebuiltStandInsCoverTheImports checks for which programs a folder of stand-ins is used.
func TestPrebuiltStandInsCoverTheImports(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder := prebuiltOf(t, dir, "2.6.0")
	newer := prebuiltOf(t, dir, "2.15.0")
	find := func(f Facts) (string, []string) {
		t.Helper()
		found, releases, err := f.prebuilt(dir)
		require.NoError(t, err)
		return found, releases
	}
	for release, want := range map[string]string{"2.6.0": folder, "2.15.0": newer} {
		found, _ := find(wheelFacts(t, release))
		require.Equal(t, want, found)
	}

	less := wheelFacts(t, "2.6.0")
	less.Libraries = slices.Clone(less.Libraries)
	less.Libraries[0].Names = less.Libraries[0].Names[1:]
	found, _ := find(less)
	require.Equal(t, folder, found, "fewer imports")

	for what, change := range map[string]func(f *Facts){
		"another function": func(f *Facts) {
			f.Libraries[0].Names = append(slices.Clip(f.Libraries[0].Names), "zzz")
		},
		"another library":                    func(f *Facts) { f.Libraries[0].SoName = "libcublas.so.99" },
		"another version":                    func(f *Facts) { f.Libraries[0].Version = "other" },
		"another CUDA":                       func(f *Facts) { f.CUDA = "11.8" },
		"another cuDNN":                      func(f *Facts) { f.Requires = []Requirement{{"nvidia-cudnn-cu12", "9.2.0"}} },
		"another function that is looked up": func(f *Facts) { f.Looked = append(slices.Clip(f.Looked), "cuZzz") },
	} {
		f := wheelFacts(t, "2.6.0")
		change(&f)
		found, releases := find(f)
		require.Empty(t, found, what)
		require.Equal(t, []string{"2.15.0+cu132", "2.6.0+cu124"}, releases)
	}

	// Stand-ins from other sources than those of this program are not used.
	require.NoError(t, os.Rename(folder, folder+"0"))
	found, _ = find(wheelFacts(t, "2.6.0"))
	require.Empty(t, found)
	require.NoError(t, os.WriteFile(filepath.Join(newer, factsFile), []byte("["), 0o600))
	f := wheelFacts(t, "2.6.0")
	_, _, err := f.prebuilt(dir)
	require.ErrorContains(t, err, "facts.json: want the facts of a PyTorch: ")
}
