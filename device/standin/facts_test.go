package standin

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("rewrite", false, "write the table of docs/without-gpu.md")

// releases are the releases of PyTorch whose facts are in testdata/wheels.
var releases = []string{"2.0.1", "2.1.2", "2.2.2", "2.3.1", "2.4.1", "2.5.1", "2.6.0", "2.7.1", "2.8.0", "2.9.1",
	"2.10.0", "2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0"}

// wheelFacts reads the facts of a release.
func wheelFacts(t *testing.T, release string) Facts {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "wheels", "torch-"+release+".json"))
	require.NoError(t, err)
	var f Facts
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&f))
	return f
}

// TestWheels checks what the stand-ins rely on in every release.
func TestWheels(t *testing.T) {
	files, err := os.ReadDir(filepath.Join("testdata", "wheels"))
	require.NoError(t, err)
	require.Len(t, files, len(releases))
	all, err := rules()
	require.NoError(t, err)
	for _, release := range releases {
		t.Run(release, func(t *testing.T) {
			f := wheelFacts(t, release)
			version, _, _ := strings.Cut(f.Torch, "+")
			require.Equal(t, release, version)
			require.NotEmpty(t, f.Architectures)
			for _, o := range f.Objects {
				require.Empty(t, o.RunPath, "%s: LD_LIBRARY_PATH would have precedence", o.File)
			}
			for _, l := range f.Libraries {
				require.NotEmpty(t, familyOf(l.SoName))
				require.True(t, slices.IsSorted(l.Names))
				require.Contains(t, []string{"", l.SoName, "NVSHMEM"}, l.Version)
				text := stubs(l.Names, all)
				for _, name := range l.Names {
					require.Regexp(t, `(?m)^[A-Z_]+\(`+name+`[,)]`, text)
				}
			}
		})
	}
}

// TestRulesMatchImports checks that some release imports a function for each rule, so that the list
// holds no function that nothing calls. The last rule of a library, its error, is for new names.
func TestRulesMatchImports(t *testing.T) {
	all, err := rules()
	require.NoError(t, err)
	matched := map[string]bool{"^(?:cublasLtCreate)$": true} // of extensions, such as TransformerEngine
	for _, release := range releases {
		f := wheelFacts(t, release)
		names := f.Looked
		for _, l := range f.Libraries {
			names = append(names, l.Names...)
		}
		for _, name := range names {
			i := slices.IndexFunc(all, func(r rule) bool { return r.pattern.MatchString(name) })
			matched[all[i].pattern.String()] = true
		}
	}
	for _, r := range all {
		if !strings.HasPrefix(r.line, "FAILS") {
			require.True(t, matched[r.pattern.String()], "no release imports a function that %s matches", r.pattern)
		}
	}
}

// TestWithoutGPUPage compares the table of the page with the facts. To renew it:
//
//	go test ./device/standin -run TestWithoutGPUPage -rewrite
func TestWithoutGPUPage(t *testing.T) {
	const path = "../../docs/without-gpu.md"
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	const begin, end = "<!-- wheels: begin -->\n", "<!-- wheels: end -->"
	before, rest, ok := strings.Cut(string(raw), begin)
	require.True(t, ok, begin)
	have, after, ok := strings.Cut(rest, end)
	require.True(t, ok, end)
	want := wheelsTable(t)
	if *rewrite {
		require.NoError(t, os.WriteFile(path, []byte(before+begin+want+end+after), 0o600))
		return
	}
	require.Equal(t, want, have, "go test ./device/standin -run TestWithoutGPUPage -rewrite")
}

// wheelsTable returns the table of releases.
func wheelsTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("" +
		"| PyTorch | CUDA | cuDNN | NCCL | functions | architectures, `sm_` | new SONAMEs | no longer needed |\n" +
		"|---|---|---|---|--:|---|---|---|\n")
	var previous []string
	for _, release := range releases {
		f := wheelFacts(t, release)
		var sonames []string
		functions := 0
		for _, l := range f.Libraries {
			sonames = append(sonames, l.SoName)
			functions += len(l.Names)
		}
		known := func(soname string) bool { return slices.Contains(previous, soname) }
		came := slices.DeleteFunc(slices.Clone(sonames), known)
		needed := func(soname string) bool {
			return slices.ContainsFunc(sonames, func(s string) bool { return familyOf(s) == familyOf(soname) })
		}
		went := slices.DeleteFunc(slices.Clone(previous), needed)
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %d | %s | %s | %s |\n", release, f.CUDA,
			required(f, "nvidia-cudnn-"), required(f, "nvidia-nccl-"), functions,
			strings.ReplaceAll(strings.Join(f.Architectures, " "), "sm_", ""),
			strings.Join(came, " "), strings.Join(went, " "))
		previous = sonames
	}
	return b.String()
}

// required returns the version of the first required package with a prefix.
func required(f Facts, prefix string) string {
	for _, r := range f.Requires {
		if strings.HasPrefix(r.Package, prefix) {
			return r.Version
		}
	}
	return ""
}
