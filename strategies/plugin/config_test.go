package plugin_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/strategies/plugin"
)

func TestInvalidNamesAreRefused(t *testing.T) {
	t.Parallel()
	path := object(t, "throws.cc")
	text := filepath.Join(t.TempDir(), "text.so")
	require.NoError(t, os.WriteFile(text, []byte("this is no object"), 0o600))
	foreign := filepath.Join(t.TempDir(), "foreign.so")
	object, err := os.ReadFile(path)
	require.NoError(t, err)
	object[18], object[19] = 243, 0 // the machine in the header of ELF: RISC-V
	require.NoError(t, os.WriteFile(foreign, object, 0o600))
	executable, err := os.Executable()
	require.NoError(t, err)
	for name, want := range map[string]string{
		"plugin":                                 "plugin: no file: want plugin:PATH",
		"plugin:":                                "plugin: no file: want plugin:PATH",
		"plugin:" + path:                         "plugin: want the names of two functions",
		"plugin:" + path + "?alloc=throws":       "plugin: want the names of two functions",
		"plugin:" + path + "?alloc=throws&free=": "plugin: free=: want a value",
		"plugin:" + path + "?alloc=a&alloc=b&free=c":               "plugin: alloc is given 2 times",
		"plugin:" + path + "?alloc=throws&free=frees&color=red":    `plugin: unknown key "color": want one of alloc, free, init`,
		"plugin:" + path + "?alloc=throws&free=frees&align=3":      "plugin: align 3: want a power of two",
		"plugin:" + path + "?alloc=throws&free=frees&align=x":      "plugin: align=x: ",
		"plugin:" + path + "?alloc=throws&free=frees&device=-1":    "plugin: device -1: want 0 to 255",
		"plugin:" + path + "?alloc=throws&free=frees&share=2":      "plugin: share 2: want a number above 0 and up to 1",
		"plugin:" + path + "?alloc=throws&free=frees&timeout=soon": `plugin: timeout "soon": want a time such as "30s"`,
		"plugin:" + path + "?alloc=throws&free=frees&timeout=-1s":  `plugin: timeout "-1s": want a time`,
		"plugin:" + path + "?alloc=%zz&free=frees":                 "plugin: ",
		"plugin:" + path + "?alloc=missing&free=frees":             "no function missing",
		"plugin:" + path + "?alloc=mangled&free=frees":             `is probably its C++ name: declare it extern "C"`,
		"plugin:./no.such.so?alloc=a&free=b":                       "plugin: ./no.such.so: no such file",
		"plugin:" + t.TempDir() + "?alloc=a&free=b":                "want a regular file",
		"plugin:" + text + "?alloc=a&free=b":                       "want a shared object",
		"plugin:" + executable + "?alloc=a&free=b":                 "plugin: " + executable + ": ",
		"plugin:" + foreign + "?alloc=throws&free=frees":           "built for EM_RISCV, this program runs on ",
	} {
		_, err := setting.Catalogue{plugin.Spec()}.Lookup(name, nil)
		require.ErrorContains(t, err, want, name)
		require.NotContains(t, err.Error(), "\n", name)
	}
}

func TestResultsNameThePlugin(t *testing.T) {
	t.Parallel()
	path := object(t, "throws.cc")
	s := named(t, path, "alloc=throws&free=frees&align=1KiB")
	require.Equal(t, "plugin:"+path+"?alloc=throws&free=frees&align=1KiB", s.Name)
	text, err := json.Marshal(s.Config)
	require.NoError(t, err)
	var c plugin.Config
	require.NoError(t, json.Unmarshal(text, &c))
	require.Equal(t, path, c.Path)
	require.Len(t, c.SHA256, 64)
	require.Equal(t, [2]string{"throws", "frees"}, [2]string{c.Alloc, c.Free})
	again, err := setting.Catalogue{plugin.Spec()}.Lookup(s.Name, text)
	require.NoError(t, err)
	require.Equal(t, s.Config, again.Config)
	other, err := json.Marshal(map[string]string{"sha256": "00"})
	require.NoError(t, err)
	_, err = setting.Catalogue{plugin.Spec()}.Lookup(s.Name, other)
	require.ErrorContains(t, err, "has the SHA-256 "+c.SHA256+": want 00")
}

func TestPathsMayBePercentEncoded(t *testing.T) {
	t.Parallel()
	object, err := os.ReadFile(object(t, "throws.cc"))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "a,b?c d.so")
	require.NoError(t, os.WriteFile(path, object, 0o600))
	s := named(t, filepath.Dir(path)+"/a%2Cb%3Fc d.so", "alloc=throws&free=frees")
	require.Equal(t, path, s.Config.(plugin.Config).Path)
}

// TestSemanticsFollowTheObject compares the semantics of equal, changed and missing shared objects,
// and of one that needs a library of its own.
func TestSemanticsFollowTheObject(t *testing.T) {
	t.Parallel()
	const query = "alloc=throws&free=frees"
	path := object(t, "throws.cc")
	s := named(t, path, query)
	require.Regexp(t, `^1,[0-9a-f]{64}$`, s.Semantics)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	write := func(name, more string) string {
		out := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(out, append(slices.Clone(text), more...), 0o600))
		return out
	}
	require.Equal(t, s.Semantics, named(t, write("copy.so", ""), query).Semantics, "the path does not matter")
	other := write("other.so", "x")
	changed := named(t, other, query)
	require.Regexp(t, `^1,[0-9a-f]{64}$`, changed.Semantics)
	require.NotEqual(t, s.Semantics, changed.Semantics)

	c := changed.Config.(plugin.Config)
	require.Equal(t, changed.Semantics, "1,"+c.Semantics())
	require.NoError(t, os.WriteFile(other, text, 0o600))
	require.Empty(t, c.Semantics(), "another file than the one that was looked up")
	require.NoError(t, os.Remove(other))
	require.Empty(t, c.Semantics(), "no file")
	require.Empty(t, plugin.Config{Path: path}.Semantics(), "no defaults")

	linked := object(t, "throws.cc", "-Wl,--no-as-needed", path)
	require.Empty(t, named(t, linked, query).Semantics, "the linker decides which library it gets")
}
