package bugs

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../../.."

// TestEveryEditFits applies every edit to the source beside this package.
func TestEveryEditFits(t *testing.T) {
	files, err := readAll()
	require.NoError(t, err)
	edited, err := apply(root, files)
	require.NoError(t, err)
	require.Greater(t, len(edited), 50)
	for path, text := range edited {
		_, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		require.NoError(t, err)
	}
}

func TestOverlayReplacesFiles(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, Overlay(root, folder))
	text, err := os.ReadFile(filepath.Join(folder, "overlay.json"))
	require.NoError(t, err)
	var overlay struct{ Replace map[string]string }
	require.NoError(t, json.Unmarshal(text, &overlay))
	require.Contains(t, overlay.Replace, mustAbs(t, filepath.Join(root, switchFile)))
	for from, to := range overlay.Replace {
		require.FileExists(t, from)
		require.FileExists(t, to)
	}
}

// TestOverlayOfOneStrategy leaves out what only other strategies have.
func TestOverlayOfOneStrategy(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, Overlay(root, folder, "slab:blaze"))
	written, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)
	var names []string
	for _, path := range written {
		names = append(names, filepath.Base(path))
	}
	require.Contains(t, names, "strategies_slab_blaze_blaze.go")
	require.Contains(t, names, "props_planted_enabled.go")
	for _, name := range names {
		require.NotContains(t, name, "strategies_bfc")
	}
}

func mustAbs(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	require.NoError(t, err)
	return path
}

// small is a file of bugs for the source below.
const small = `# Two bugs.
setting plain: bfc {} on {"capacity":1}

bug one/adds-two: it adds two
in plain breaks I1 B2 by faults refusing 2
    a 1
    f 0
bug one/adds-none: it adds nothing
in plain breaks I4
edit one.go add
 func add(n int) int {
-	return n + 1
+	if planted.Is("one/adds-two") {
+		n++
+	}
+
+	if !planted.Is("one/adds-none") {
+		n++
+	}
+	return n
 }
edit one.go (*set).put
 	s.all = append(s.all, v)
+	s.n += planted.Is("one/adds-two")
 }
`

const code = `// Package one has two functions.
package one

func add(n int) int {
	return n + 1
}

func (s *set[T]) put(v T) {
	s.n++
	s.all = append(s.all, v)
}
`

func TestAFileIsParsed(t *testing.T) {
	f, err := parse(small)
	require.NoError(t, err)
	setting := Setting{"bfc", "{}", `{"capacity":1}`}
	require.Equal(t, []Bug{
		{
			ID: "one/adds-two", Setting: setting, Doc: "it adds two", Breaks: []string{"I1", "B2"},
			Minimal: "a 1\nf 0", Judge: ByFaults, Nth: 2,
		},
		{ID: "one/adds-none", Setting: setting, Doc: "it adds nothing", Breaks: []string{"I4"}},
	}, f.bugs)
	require.Len(t, f.edits, 2)
}

// TestEditsAreMade compares an edited file.
func TestEditsAreMade(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, code)
	edited, err := applyTo(t, folder, small)
	require.NoError(t, err)
	require.Equal(t, `// Package one has two functions.
package one; import "github.com/vramyard/vramyard/props/planted"

func add(n int) int {
	if planted.Is("one/adds-two") {
		n++
	}

	if !planted.Is("one/adds-none") {
		n++
	}
	return n
}

func (s *set[T]) put(v T) {
	s.n++
	s.all = append(s.all, v)
	s.n += planted.Is("one/adds-two")
}
`, string(edited["one.go"]))
	require.Contains(t, string(edited[switchFile]), "const Enabled = true")
}

// write writes the source and the switch of a module into a folder.
func write(t *testing.T, folder, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(folder, filepath.Dir(switchFile)), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(folder, switchFile),
		[]byte("package planted\n\nconst Enabled = false\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "one.go"), []byte(text), 0o644))
}

// applyTo applies the text of a file of bugs.
func applyTo(t *testing.T, folder, text string) (map[string][]byte, error) {
	t.Helper()
	f, err := parse(text)
	require.NoError(t, err)
	f.name = "one.txt"
	return apply(folder, []*file{f})
}

// TestBadFilesAreRefused names the line of each mistake.
func TestBadFilesAreRefused(t *testing.T) {
	const head = "setting s: bfc {} on {}\nbug a/b: doc\n"
	for text, want := range map[string]string{
		"bugs a/b: doc":             `1: "bugs": want setting, bug, in, edit or #`,
		"    a 1":                   `1: indented line "    a 1"`,
		"setting s: bfc {} over {}": "1: want setting NAME: STRATEGY JSON on JSON",
		"setting s: bfc {] on {}":   "1: want setting NAME: STRATEGY JSON on JSON",
		"setting s: bfc {} on {}\nsetting s: b 1 on 2":             `2: setting "s" is there already`,
		"setting s: bfc {} on {}":                                  `1: setting "s" is used by no bug`,
		"bug A/b: doc":                                             "1: want bug PACKAGE/NAME: DESCRIPTION",
		"in s breaks I1":                                           "1: want in SETTING after a bug",
		"edit a.go f":                                              "1: want edit FILE FUNCTION after a bug",
		head + "in t breaks I1":                                    `3: unknown setting "t"`,
		head + "in s":                                              "3: want breaks and invariants after the setting",
		head + "in s breaks I1 by chance":                          `3: judge "chance": want faults, heap, relations, callers, logs, misled or trained`,
		head + "in s breaks I1 refusing none":                      `3: refusing "none": want the number of a device call`,
		head + "in s breaks I1 I":                                  `3: "I": want by JUDGE, refusing CALL, in this order`,
		head + "in s breaks I1\nedit a.go f\n x":                   "4: no line that is put in has planted.Is",
		head + "in s breaks I1\nedit a.go f\n+planted.Is(\"a/c\")": "4: a/c is no bug of this file",
		head + "in s breaks I1\nedit a.go f\n-planted.Is(\"a/b\")": "4: a/b stands in a line that is not put in",
	} {
		_, err := parse(text)
		require.ErrorContains(t, err, want, text)
	}
}

// TestEditsThatDoNotFitAreRefused names the file of bugs and the line of the edit.
func TestEditsThatDoNotFitAreRefused(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "package one\n\nfunc f() {\n\tn++\n\tm++\n\tn++\n}\n")
	const head = "setting s: bfc {} on {}\nbug a/b: doc\nin s breaks I1\n"
	const plus = "+\tplanted.Is(\"a/b\")\n"
	for text, want := range map[string]string{
		"edit one.go f\n \tn++\n" + plus: "props/planted/bugs/one.txt:4: the lines of " +
			"this edit occur 2 times in f of one.go, want once",
		"edit one.go f\n \tx++\n" + plus: "props/planted/bugs/one.txt:4: the lines of " +
			"this edit occur 0 times in f of one.go, want once",
		"edit one.go f\n" + plus: "props/planted/bugs/one.txt:4: the lines of " +
			"this edit occur 6 times in f of one.go, want once",
		"edit one.go g\n \tn++\n" + plus: "props/planted/bugs/one.txt:4: one.go has no " +
			"function g",
		"edit two.go f\n \tn++\n" + plus:                                    "props/planted/bugs/one.txt:4: open ",
		"edit one.go f\n-\tm++\n" + plus + "edit one.go f\n-\tm++\n" + plus: "one.go: two edits change line 5",
		"edit one.go f\n \tm++\n" + plus + "edit one.go f\n \tm++\n" + plus: "one.go: two edits change line 6",
	} {
		_, err := applyTo(t, folder, head+text)
		require.ErrorContains(t, err, want, text)
	}
}
