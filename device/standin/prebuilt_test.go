package standin

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// prebuiltOf writes what Prebuild writes for a release, except the libraries, and returns the path.
func prebuiltOf(t *testing.T, dir, release string) string {
	t.Helper()
	f := wheelFacts(t, release)
	r, names, err := f.recipe()
	require.NoError(t, err)
	key, err := r.Key()
	require.NoError(t, err)
	set := prebuilt{Facts: f, Files: map[string]string{}}
	for _, name := range names {
		set.Files[name] = name + "-" + release
	}
	text, err := json.Marshal(set)
	require.NoError(t, err)
	path := filepath.Join(dir, key+".json")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

// TestPrebuiltStandInsCoverTheImports checks for which programs prebuilt stand-ins are used.
func TestPrebuiltStandInsCoverTheImports(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	older, newer := prebuiltOf(t, dir, "2.6.0"), prebuiltOf(t, dir, "2.15.0")
	find := func(f Facts) (files, releases []string) {
		t.Helper()
		_, names, err := f.recipe()
		require.NoError(t, err)
		files, releases, err = f.prebuilt(dir, names)
		require.NoError(t, err)
		return files, releases
	}
	for _, release := range []string{"2.6.0", "2.15.0"} {
		f := wheelFacts(t, release)
		files, _ := find(f)
		require.Len(t, files, len(f.libraries())+1)
		require.Equal(t, filepath.Join(dir, core+"-"+release), files[0])
	}

	less := wheelFacts(t, "2.6.0")
	less.Libraries = slices.Clone(less.Libraries)
	less.Libraries[0].Names = less.Libraries[0].Names[1:]
	files, _ := find(less)
	require.NotEmpty(t, files, "fewer imports")

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
		files, releases := find(f)
		require.Empty(t, files, what)
		require.Equal(t, []string{"2.15.0+cu132", "2.6.0+cu124"}, releases)
	}

	// Stand-ins from other sources than those of this program are not used.
	require.NoError(t, os.Rename(older, filepath.Join(dir, "0.json")))
	files, _ = find(wheelFacts(t, "2.6.0"))
	require.Empty(t, files)
	require.NoError(t, os.WriteFile(newer, []byte("["), 0o600))
	f := wheelFacts(t, "2.6.0")
	_, _, err := f.prebuilt(dir, nil)
	require.ErrorContains(t, err, newer+": want the facts of a PyTorch: ")
}
