package cli

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// systems are the targets of the programs; some modules are linked on one of them only.
var systems = []string{"linux", "darwin", "windows"}

// linked returns the folders of linked packages by module, which is "path version folder".
func linked(t *testing.T) map[string][]string {
	t.Helper()
	folders := map[string][]string{}
	for _, system := range systems {
		c := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} "+
			"{{.Dir}}\t{{$.Dir}}{{end}}{{end}}", "../cmd/...")
		c.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=")
		out, err := c.Output()
		require.NoError(t, err)
		for line := range strings.Lines(string(out)) {
			if module, dir, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
				folders[module] = append(folders[module], dir)
			}
		}
	}
	return folders
}

// licenseFile matches the names of files that a license or a notice is in.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|ofl|ftl)([-._].*)?$`)

// licenseFiles returns the licenses of packages of a module: the files beside them and above them,
// and all of a folder for licenses.
func licenseFiles(t *testing.T, root string, packages []string) []string {
	t.Helper()
	folders := map[string]bool{filepath.Join(root, "licenses"): true, root: true}
	for _, dir := range packages {
		for ; len(dir) > len(root); dir = filepath.Dir(dir) {
			folders[dir] = true
		}
	}
	var files []string
	for _, dir := range slices.Sorted(maps.Keys(folders)) {
		entries, err := os.ReadDir(dir)
		if dir != filepath.Join(root, "licenses") {
			require.NoError(t, err)
		}
		for _, e := range entries {
			if e.Type().IsRegular() && (licenseFile.MatchString(e.Name()) || filepath.Base(dir) == "licenses") {
				files = append(files, filepath.Join(dir, e.Name()))
			}
		}
	}
	return files
}

// made returns what notices.txt must be.
func made(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	text := func(title, file string) {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		plain := strings.ReplaceAll(strings.ToValidUTF8(string(content), "?"), "\r\n", "\n")
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", title, strings.Repeat("-", len(title)), strings.Trim(plain, "\n"))
	}
	b.WriteString("The license of Vramyard, and those of the modules that are linked into its programs. The runtime and " +
		"the standard\nlibrary of Go have the license of golang.org/x/sys below.\n")
	text("Vramyard", "../LICENSE")
	folders := linked(t)
	for _, module := range slices.Sorted(maps.Keys(folders)) {
		words := strings.SplitN(module, " ", 3)
		files := licenseFiles(t, words[2], folders[module])
		require.NotEmpty(t, files, "%s has no license", module)
		for _, f := range files {
			name, err := filepath.Rel(words[2], f)
			require.NoError(t, err)
			text(words[0]+" "+words[1]+": "+filepath.ToSlash(name), f)
		}
	}
	return b.String()
}

// TestNoticesListTheLinkedModules holds the notices to the modules that the programs are built
// of.
func TestNoticesListTheLinkedModules(t *testing.T) {
	want := made(t)
	if *rewrite {
		require.NoError(t, os.WriteFile("notices.txt", []byte(want), 0o666))
		return
	}
	require.True(t, want == notices, "the modules that are linked have changed: go test ./cli -run Notices -rewrite, "+
		"and look at the diff")
	out := succeed(t, "licenses")
	require.Equal(t, notices, out)
	for _, module := range []string{"github.com/ajstarks/svgo ", "github.com/golang/freetype "} {
		require.Contains(t, out, "\n"+module)
	}
	require.Contains(t, out, "The FreeType Project LICENSE")
	require.Contains(t, out, "Creative Commons Attribution 4.0")
}
