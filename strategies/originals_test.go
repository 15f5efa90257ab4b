package strategies_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ourNames is the head of the column with our names in a table of names of an original.
const ourNames = "here"

// quoted finds the names in a cell of a table.
var quoted = regexp.MustCompile("`([^`]+)`")

// TestNamesOfOriginals holds the tables that lead from the names in an original to ours: each name
// in a column "here" of a page under docs/strategies is declared in the package of that strategy,
// or in a package that strategies are built from. A method or field may follow its type after a
// dot.
func TestNamesOfOriginals(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join("..", "docs", "strategies", "*.md"))
	require.NoError(t, err)
	shared := declared(t, "internal", filepath.Join("..", "kit"), filepath.Join("..", "alloc"))
	tables := 0
	for _, path := range pages {
		page, err := os.ReadFile(path)
		require.NoError(t, err)
		column := -1
		var own map[string]bool
		for line := range strings.Lines(string(page)) {
			cells := strings.Split(strings.TrimSpace(line), "|")
			if len(cells) < 3 {
				column = -1
				continue
			}
			if column < 0 {
				column = slices.IndexFunc(cells, func(cell string) bool { return strings.TrimSpace(cell) == ourNames })
				if column >= 0 {
					own = declared(t, strings.TrimSuffix(filepath.Base(path), ".md"))
					tables++
				}
				continue
			}
			for _, name := range quoted.FindAllStringSubmatch(cells[column], -1) {
				for part := range strings.SplitSeq(name[1], ".") {
					require.True(t, own[part] || shared[part], "%s: `%s` is not declared", path, name[1])
				}
			}
		}
	}
	require.NotZero(t, tables, "pages with a table of names")
}

// declared returns the names that the Go files under some folders declare.
func declared(t *testing.T, folders ...string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	add := func(ids ...*ast.Ident) {
		for _, id := range ids {
			names[id.Name] = true
		}
	}
	for _, folder := range folders {
		require.NoError(t, filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					add(n.Name)
				case *ast.TypeSpec:
					add(n.Name)
				case *ast.ValueSpec:
					add(n.Names...)
				case *ast.StructType:
					for _, field := range n.Fields.List {
						add(field.Names...)
					}
				}
				return true
			})
			return nil
		}))
	}
	return names
}
