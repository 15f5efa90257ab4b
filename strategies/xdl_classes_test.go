package strategies_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"html"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// classGroup is a package of the diagram of XDL's originals.
type classGroup struct {
	title, dir string
	roots      []string // its structs; of a strategy also those that they hold
}

// classColumns are the packages of the diagram, column by column.
var classColumns = [][]classGroup{
	{{"slab:xdl", "strategies/slab/xdl", []string{"Locked", "Allocator"}}},
	{
		{"slabbuddy:xdl", "strategies/slabbuddy/xdl", []string{"Locked", "Allocator"}},
		{"kit/shards: locks of both", "kit/shards", []string{"Set", "shard", "Device"}},
		{"alloc/wrap: lock of buddy:xdl", "alloc/wrap", []string{"locked"}},
	},
	{
		{"buddy:xdl", "strategies/buddy/xdl", []string{"Allocator"}},
		{"slab:blaze", "strategies/slab/blaze", []string{"Allocator"}},
	},
}

// TestClassesOfXDL holds the class diagram of XDL's originals on the page of slabbuddy to the code:
// the structs, which holds which, their locks, Alloc and Free, and every field and method that
// the tables of names on the pages lead to, with the name in the original.
//
//	go test ./strategies -run TestClassesOfXDL -rewrite
func TestClassesOfXDL(t *testing.T) {
	d := &diagram{classes: map[string]*class{}}
	for _, column := range classColumns {
		for _, g := range column {
			d.read(t, g.dir)
		}
	}
	d.choose(t)
	drawn := d.svg()
	path := filepath.Join("..", "docs", "strategies", "xdl-classes.svg")
	if *rewrite {
		require.NoError(t, os.WriteFile(path, []byte(drawn), 0o644))
		return
	}
	stored, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(stored), drawn, "go test ./strategies -run TestClassesOfXDL -rewrite")
}

// nameRow is a row of a table of names: the names in the original, ours, and its file.
var nameRow = regexp.MustCompile("(?m)^\\| (`[^|]*) \\| `([\\w.]+)` in \\[[^]]*\\]\\(([^)]*\\.go)\\)")

// originalNames returns the names in XDL by directory and name of ours.
func originalNames(t *testing.T) map[string]string {
	t.Helper()
	names := map[string]string{}
	for _, page := range []string{"slab", "buddy", "slabbuddy"} {
		text, err := os.ReadFile(filepath.Join("..", "docs", "strategies", page+".md"))
		require.NoError(t, err)
		for _, row := range nameRow.FindAllStringSubmatch(string(text), -1) {
			dir := strings.TrimPrefix(filepath.Dir(row[3]), "../../")
			names[dir+"."+row[2]] = strings.ReplaceAll(row[1], "`", "")
		}
	}
	return names
}

// diagram is the structs of the code by directory and name, and the drawn ones by column.
type diagram struct {
	classes map[string]*class
	drawn   [3][]*class
}

// class is a struct of the diagram.
type class struct {
	name, original  string
	group           string // title above the class, of the first one of a package
	fields, methods []member
	column, top     int // top is 0 if the class is not drawn
}

// member is a field or a method.
type member struct {
	text, name, original string
	lock                 bool
	holds                []string // names of the types in its type
}

// read adds the structs of a package with all their fields and methods.
func (d *diagram) read(t *testing.T, dir string) {
	t.Helper()
	paths, err := fs.Glob(os.DirFS(".."), dir+"/*.go")
	require.NoError(t, err)
	var methods []*ast.FuncDecl
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", path), nil, 0)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				methods = append(methods, decl)
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					if typ, ok := spec.(*ast.TypeSpec); ok {
						d.declare(dir, typ, importsOf(file))
					}
				}
			}
		}
	}
	for _, m := range methods {
		if c := d.classes[dir+"."+strings.TrimSuffix(receiver(m), ".")]; c != nil {
			c.methods = append(c.methods, member{text: m.Name.Name + "()", name: m.Name.Name})
		}
	}
}

// qualifier is the package in front of a type, which the diagram leaves out.
var qualifier = regexp.MustCompile(`\b\w+\.`)

// importsOf returns the directories of this module that a file imports, by the name there.
func importsOf(file *ast.File) map[string]string {
	dirs := map[string]string{}
	for _, i := range file.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		dir := strings.TrimPrefix(path, "github.com/vramyard/vramyard/")
		name := filepath.Base(dir)
		if i.Name != nil {
			name = i.Name.Name
		}
		dirs[name] = dir
	}
	return dirs
}

// declare adds a type if it is a struct.
func (d *diagram) declare(dir string, spec *ast.TypeSpec, imports map[string]string) {
	typ, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	c := &class{name: spec.Name.Name}
	d.classes[dir+"."+c.name] = c
	for _, f := range typ.Fields.List {
		text := types.ExprString(f.Type)
		m := member{lock: text == "sync.Mutex"}
		text = qualifier.ReplaceAllString(text, "")
		m.text = text
		ast.Inspect(f.Type, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				m.holds = append(m.holds, imports[types.ExprString(n.X)]+"."+n.Sel.Name)
				return false
			case *ast.Ident:
				m.holds = append(m.holds, dir+"."+n.Name)
			}
			return true
		})
		for _, name := range f.Names {
			m.name, m.text = name.Name, name.Name+" "+text
			c.fields = append(c.fields, m)
		}
		if len(f.Names) == 0 {
			c.fields = append(c.fields, m)
		}
	}
}

// choose selects the classes and their members, and places the classes.
func (d *diagram) choose(t *testing.T) {
	t.Helper()
	drawn := map[string]bool{}
	for column, groups := range classColumns {
		for _, g := range groups {
			title := g.title
			for names := slices.Clone(g.roots); len(names) > 0; names = names[1:] {
				key := g.dir + "." + names[0]
				c := d.classes[key]
				require.NotNil(t, c, "no struct %s", key)
				if drawn[key] {
					continue
				}
				drawn[key], c.group, c.column, title = true, title, column, ""
				d.drawn[column] = append(d.drawn[column], c)
				if strings.HasPrefix(g.dir, "strategies/") {
					names = append(names, d.heldBy(c, g.dir)...)
				}
			}
		}
	}
	originals := originalNames(t)
	for key := range drawn {
		d.classes[key].keep(key, originals, drawn)
	}
	for _, column := range d.drawn {
		top := 0
		for _, c := range column {
			if c.group != "" {
				top += classGap + classLine
			}
			c.top = top
			top += c.height() + classGap
		}
	}
}

// heldBy returns the structs of its own package that a class has in fields, without its settings.
func (d *diagram) heldBy(c *class, dir string) (names []string) {
	for _, f := range c.fields {
		for _, held := range f.holds {
			if name, own := strings.CutPrefix(held, dir+"."); own && name != "Config" && d.classes[held] != nil {
				names = append(names, name)
			}
		}
	}
	return names
}

// keep drops all members but Alloc, Free, locks, fields that hold drawn classes or a strategy, and
// members with a name in the original. A class without such a field keeps all its fields.
func (c *class) keep(key string, originals map[string]string, drawn map[string]bool) {
	c.original = originals[key]
	chosen := func(m member) bool {
		holds := slices.ContainsFunc(m.holds, func(h string) bool { return drawn[h] || h == "alloc.Strategy" })
		return m.original != "" || m.lock || holds || m.text == "Alloc()" || m.text == "Free()"
	}
	for _, all := range []*[]member{&c.fields, &c.methods} {
		for i, m := range *all {
			(*all)[i].original = originals[key+"."+m.name]
		}
		if all == &c.methods || slices.ContainsFunc(*all, chosen) {
			*all = slices.DeleteFunc(*all, func(m member) bool { return !chosen(m) })
		}
	}
	order := []string{"Free", "Alloc"} // the last one first
	slices.SortStableFunc(c.methods, func(a, b member) int {
		return cmp.Compare(slices.Index(order, b.name), slices.Index(order, a.name))
	})
}

// Pixels of the diagram.
const (
	classWidth = 240
	classLine  = 16
	classGap   = 14
	classLane  = 6 // between two lines in a gutter
)

func (c *class) height() int { return (1+len(c.fields)+len(c.methods))*classLine + 4 }

// classLink leads from a member to the class that it holds, along a lane of a gutter.
type classLink struct {
	from   *class
	y      int // of the member
	gutter int // the one left of the column of this number
	lane   int
}

// links returns the lines of the diagram by the class that they lead to, and the number of lanes
// of each gutter. Lines to one class through one gutter share a lane.
func (d *diagram) links() (links map[*class][]classLink, lanes [4]int) {
	links = map[*class][]classLink{}
	for _, column := range d.drawn {
		for _, from := range column {
			for i, f := range from.fields {
				for _, held := range f.holds {
					if to := d.classes[held]; to != nil && to.top > 0 {
						links[to] = append(links[to], classLink{from: from, y: from.middle(i + 1), gutter: gutterOf(from, to)})
					}
				}
			}
		}
	}
	for _, column := range d.drawn {
		for _, to := range column {
			shared := map[int]int{}
			for i, l := range links[to] {
				if _, ok := shared[l.gutter]; !ok {
					shared[l.gutter] = lanes[l.gutter]
					lanes[l.gutter]++
				}
				links[to][i].lane = shared[l.gutter]
			}
		}
	}
	return links, lanes
}

// gutterOf returns the gutter between two adjacent columns. Links within the first column run on
// its left, those within another on its right.
func gutterOf(from, to *class) int {
	if from.column == to.column && from.column > 0 {
		return from.column + 1
	}
	return max(from.column, to.column)
}

// middle returns where a line of text of a class is crossed. Line 0 is its name.
func (c *class) middle(line int) int { return c.top + line*classLine + classLine/2 + 2 }

// svg returns the picture.
func (d *diagram) svg() string {
	links, lanes := d.links()
	var lefts [4]int // of the columns, and the right end
	x, bottom := 0, 0
	for i := range lefts {
		if lanes[i] > 0 || i > 0 {
			x += (lanes[i]+1)*classLane + 8
		}
		lefts[i] = x
		x += classWidth
	}
	var b strings.Builder
	for column, classes := range d.drawn {
		for _, c := range classes {
			c.draw(&b, lefts[column])
			bottom = max(bottom, c.top+c.height())
		}
	}
	for _, classes := range d.drawn {
		for _, to := range classes {
			for _, l := range links[to] {
				lane := lefts[l.gutter] - 12 - l.lane*classLane
				fmt.Fprintf(&b, "<path d=\"M%d %dH%dV%dH%d\"/>\n",
					side(lefts[l.from.column], lane), l.y, lane, to.middle(0), side(lefts[to.column], lane))
			}
		}
	}
	return fmt.Sprintf(
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="-4 0 %d %d" font-family="sans-serif" font-size="12">
<style>rect.class{fill:#f4f6f9;stroke:#8a97a8}rect.name{fill:#d9e4f0;stroke:#8a97a8}.name,.group{font-weight:bold}
.original{fill:#66707c;font-style:italic;text-anchor:end}.lock{fill:#b03a2e;font-weight:bold}
path{fill:none;stroke:#3b6ea5;marker-end:url(#held)}path.line{stroke:#8a97a8;marker-end:none}</style>
<marker id="held" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0 0L8 4L0 8z" style="fill:#3b6ea5;stroke:none;marker-end:none"/></marker>
<rect x="-4" width="100%%" height="100%%" fill="#fff"/>
`, lefts[len(lefts)-1]+8, bottom+8) + b.String() + "</svg>\n"
}

// side returns the side of a column that faces a lane.
func side(left, lane int) int {
	if lane > left {
		return left + classWidth
	}
	return left
}

// draw writes a class as a box: its name, its fields, a line, its methods.
func (c *class) draw(b *strings.Builder, left int) {
	if c.group != "" {
		fmt.Fprintf(b, "<text class=\"group\" x=\"%d\" y=\"%d\">%s</text>\n", left, c.top-6, html.EscapeString(c.group))
	}
	box := func(class string, height int) {
		fmt.Fprintf(b, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n",
			class, left, c.top, classWidth, height)
	}
	text := func(class string, x, line int, s string) {
		if s == "" {
			return
		}
		fmt.Fprintf(b, "<text class=\"%s\" x=\"%d\" y=\"%d\">%s</text>\n", class, x, c.middle(line)+4, html.EscapeString(s))
	}
	box("class", c.height())
	box("name", classLine+3)
	text("name", left+6, 0, c.name)
	text("original", left+classWidth-6, 0, c.original)
	for i, m := range slices.Concat(c.fields, c.methods) {
		kind := "member"
		if m.lock {
			kind = "lock"
		}
		text(kind, left+6, i+1, m.text)
		text("original", left+classWidth-6, i+1, m.original)
	}
	if len(c.methods) > 0 {
		fmt.Fprintf(b, "<path class=\"line\" d=\"M%d %dh%d\"/>\n", left, c.top+(1+len(c.fields))*classLine+2, classWidth)
	}
}
