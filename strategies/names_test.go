package strategies_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// namedInFile finds a name and the file that declares it.
var namedInFile = regexp.MustCompile("`([\\w.]+)` in \\[[^]]*\\]\\(([^)]*\\.go)\\)")

// leastNames is the least number of names on the pages of the originals, by page.
var leastNames = map[string]int{"bfc.md": 28, "slab.md": 27, "buddy.md": 11, "slabbuddy.md": 9, "dlmalloc.md": 15}

// TestNamesOfOriginals holds the tables that lead from the names in an original to ours: on every
// page under docs/strategies, each `name` in [file](path) is declared in that file.
func TestNamesOfOriginals(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join("..", "docs", "strategies", "*.md"))
	require.NoError(t, err)
	files := map[string]map[string]bool{}
	for _, path := range pages {
		page, err := os.ReadFile(path)
		require.NoError(t, err)
		names := namedInFile.FindAllStringSubmatch(string(page), -1)
		require.GreaterOrEqual(t, len(names), leastNames[filepath.Base(path)], "%s: names of the original", path)
		for _, found := range names {
			name, source := found[1], filepath.Join(filepath.Dir(path), found[2])
			if files[source] == nil {
				files[source] = declaredIn(t, source)
			}
			require.True(t, files[source][name], "%s: %s declares no %s", path, source, name)
		}
	}
}

// declaredIn returns the names that a file declares: functions, types, constants and variables by
// name, methods and fields after their type and a dot.
func declaredIn(t *testing.T, path string) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	require.NoError(t, err)
	names := map[string]bool{}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names[receiver(d)+d.Name.Name] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				declare(names, spec)
			}
		}
	}
	return names
}

// receiver returns the type of a method and a dot, or nothing for a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	return typ.(*ast.Ident).Name + "."
}

func declare(names map[string]bool, spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, n := range spec.Names {
			names[n.Name] = true
		}
	case *ast.TypeSpec:
		names[spec.Name.Name] = true
		if s, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range s.Fields.List {
				for _, n := range field.Names {
					names[spec.Name.Name+"."+n.Name] = true
				}
			}
		}
	}
}
