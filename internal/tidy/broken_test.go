package tidy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// files is a small tree: names and contents. A go.mod is added.
type files map[string]string

// snippet is a tree that breaks a rule, or with want empty one that comes near.
type snippet struct {
	rule  Rule
	name  string
	files files
	want  []string // findings, each as file:line and a part of the text
}

// goFile returns a Go file of package p with the given imports, paths of our own without
// the module, and the declarations in body.
func goFile(p, body string, imports ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "package %s\n", p)
	for _, i := range imports {
		if !strings.Contains(i, ":") {
			i = "std:" + i
		}
		kind, path, _ := strings.Cut(i, ":")
		if kind == "our" {
			path = "example.org/house/" + path
		}
		fmt.Fprintf(&b, "import %q\n", path)
	}
	return b.String() + body
}

// long returns a function of n lines.
func long(name string, n int) string {
	return "func " + name + "() {\n" + strings.Repeat("\n", n-2) + "}\n"
}

// wide returns a line that begins with text, and n letters behind it.
func wide(text string, n int) string {
	return text + strings.Repeat("x", n)
}

var floorSnippets = []snippet{
	{Floors, "upward", files{"alloc/a.go": goFile("alloc", "", "our:strategies/bfc")},
		[]string{"alloc/a.go:2 strategies/bfc, which lies on a floor above alloc"}},
	{Floors, "upward in an internal test", files{"device/a_test.go": goFile("device", "", "our:alloc")},
		[]string{"device/a_test.go:2 may import of ours nothing"}},
	{Floors, "sideways", files{"strategies/bfc/a.go": goFile("bfc", "", "our:strategies/slab")},
		[]string{"strategies/bfc/a.go:2 may import of ours only alloc, alloc/..., device"}},
	{Floors, "strategy sees the simulation", files{"strategies/bfc/a.go": goFile("bfc", "", "our:device/sim")},
		[]string{"strategies/bfc/a.go:2 may import of ours only"}},
	{Floors, "strategy sees a tool of others", files{"strategies/bfc/a.go": goFile("bfc", "", "our:internal/fileio")},
		[]string{"strategies/bfc/a.go:2 knows nothing of it"}},
	{Floors, "harness knows a strategy", files{"harness/replay/a.go": goFile("replay", "", "our:strategies/bfc")},
		[]string{"harness/replay/a.go:2 knows nothing of it"}},
	{Floors, "harness knows the catalogue",
		files{"harness/study/compare/a.go": goFile("compare", "", "our:strategies")},
		[]string{"harness/study/compare/a.go:2 knows nothing of it"}},
	{Floors, "harness knows properties", files{"harness/trace/a.go": goFile("trace", "", "our:props")},
		[]string{"harness/trace/a.go:2 knows nothing of it"}},
	{Floors, "upward within the harness", files{"harness/trace/a.go": goFile("trace", "", "our:harness/replay")},
		[]string{"harness/trace/a.go:2 a floor above harness/trace"}},
	{Floors, "props knows a strategy", files{"props/a.go": goFile("props", "", "our:strategies/bfc")},
		[]string{"props/a.go:2 knows nothing of it"}},
	{Floors, "props imports testing", files{"props/a.go": goFile("props", "", "testing")},
		[]string{"props/a.go:2 imports testing outside tests"}},
	{Floors, "cmd imported by a test",
		files{"harness/replay/a_test.go": goFile("replay_test", "", "our:cmd/vramyard")},
		[]string{"harness/replay/a_test.go:2 nothing below cmd imports cmd"}},
	{Floors, "library in an allocator",
		files{"strategies/bfc/a.go": goFile("bfc", "", "std:github.com/google/btree")},
		[]string{"strategies/bfc/a.go:2 standard library alone"}},
	{Floors, "library in the contract", files{"alloc/a.go": goFile("alloc", "", "std:golang.org/x/exp/maps")},
		[]string{"alloc/a.go:2 standard library alone"}},
	{Floors, "root imported", files{"device/a.go": "package device\nimport \"example.org/house\"\n"},
		[]string{"device/a.go:2 no code to import"}},
	{Floors, "no room", files{"attic/a.go": goFile("attic", "")},
		[]string{"attic/a.go:1 no room"}},
	{Floors, "all in order", files{
		"device/a.go":              goFile("device", "", "fmt", "std:golang.org/x/exp/constraints"),
		"device/sim/a.go":          goFile("sim", "", "our:device"),
		"alloc/a.go":               goFile("alloc", "", "our:device", "our:internal/invariants"),
		"kit/front/a.go":           goFile("ledger", "", "our:kit/index", "our:alloc"),
		"strategies/strategies.go": goFile("strategies", "", "our:strategies/slab", "our:alloc"),
		"strategies/slabbuddy/a.go": goFile("slabbuddy", "", "our:strategies/internal/cells",
			"our:strategies/internal/blocks"),
		"strategies/bfc/a_test.go":   goFile("bfc_test", "", "our:props/propstest", "our:strategies", "testing"),
		"harness/trace/torch/a.go":   goFile("torch", "", "our:harness/trace", "our:internal/fileio"),
		"harness/study/compare/a.go": goFile("compare", "", "our:harness/replay", "std:github.com/google/btree"),
		"props/propstest/a.go":       goFile("propstest", "", "our:props", "testing"),
		"device/devicetest/a.go":     goFile("devicetest", "", "our:device", "testing"),
		"cmd/vramyard/main.go":       goFile("main", "", "our:strategies", "our:cmd/vramyard/ui"),
		"cmd/vramyard/main_test.go":  goFile("main_test", "", "our:cmd/vramyard/ui"),
		"examples/newstrategy/a.go":  goFile("main", "", "our:props", "our:alloc"),
		"harness/replay/helper_t.go": goFile("replay", "", "our:device/sim", "our:harness/trace/workload"),
	}, nil},
}

var docSnippets = []snippet{
	{PackageComments, "none", files{"alloc/a.go": "package alloc\n"},
		[]string{"alloc/a.go:1 no package comment"}},
	{PackageComments, "two", files{"cmd/x/a.go": "// Command x\npackage main\n",
		"cmd/x/b.go": "// Command x\npackage main\n"},
		[]string{"cmd/x/b.go:1 second package comment"}},
	{PackageComments, "another name", files{"harness/a.go": "// Package hairness helps.\npackage harness\n"},
		[]string{`harness/a.go:1 begin with "Package harness "`}},
	{PackageComments, "in another file", files{"strategies/x/a.go": "// Package x is.\npackage x\n"},
		[]string{"strategies/x/a.go:1 belongs in doc.go"}},
	{PackageComments, "all in order", files{
		"device/doc.go":  "// Package device is.\npackage device\n",
		"device/a.go":    "package device\n",
		"cmd/x/main.go":  "// Command x does.\npackage main\n",
		"docs/x_test.go": "package docs_test\n",
	}, nil},
	{DocComments, "names", files{"alloc/a.go": `package alloc
func F() {}
type T struct{}
func (T) M() {}
const C = 1
var (
	V = 1
)
`}, []string{"a.go:2 F has no comment", "a.go:3 T has no comment", "a.go:4 M has no comment", "a.go:5 C has no comment",
		"a.go:7 variable V has no comment"}},
	{DocComments, "wrong beginnings", files{"alloc/a.go": `package alloc
// Returns nothing.
func F() {}
// Tea is good.
type T struct{}
// The method.
func (*T) M() {}
var (
	// This is it.
	V = 1
)
`}, []string{"a.go:3 comment of F does not", "a.go:5 comment of T does not", "a.go:7 comment of M does not",
		"a.go:10 comment of V does not"}},
	{DocComments, "members", files{"alloc/a.go": `package alloc
// T is a struct.
type T[K any] struct {
	A, B int
	C struct {
		D int
	} // a part
}
// M of a generic type begins well.
func (t *T[K]) M() {}
func (t *T[K]) N() {}
func (t *T[K]) Close() error { return nil }
func (t *T[K]) O() {}
// I is an interface.
type I interface {
	M()
	// Do it.
	N()
}
`}, []string{"a.go:4 field T.A has no", "a.go:6 field T.D has no", "a.go:13 O has no comment",
		"a.go:16 method I.M has no", "a.go:18 comment of N does not"}},
	{DocComments, "all in order", files{"alloc/a_test.go": "package alloc\nfunc F() {}\n",
		"alloc/a.go": `package alloc
// F, too, is explained.
func F() {}
// A T is something.
type T struct {
	A int // amount
	// B is more.
	B int
	c int
	I
}
// String returns the text.
func (T) String() string { return "" }
type i struct{ X int }
func (i) M() {}
// The limits.
const (
	Low = 1
	High = 2
)
const (
	One = 1 // one
	// Two is two.
	Two = 2
	three = 3
)
// I does.
type I interface {
	// M does.
	M(x struct{ Y int })
	error
}
`}, nil},
	{Examples, "none", files{"alloc/a.go": "package alloc\nvar a, B int\n", "kit/a.go": "package kit\nfunc F() {}\n",
		"props/a.go": "package props\ntype T int\n", "props/a_test.go": "package props\nfunc TestExample() {}\n"},
		[]string{"alloc/a.go:1 package alloc has no", "kit/a.go:1 package kit has no", "props/a.go:1 package props has no"}},
	{Examples, "all in order", files{
		"alloc/a.go": "package alloc\nfunc F() {}\n", "alloc/a_test.go": "package alloc_test\nfunc ExampleF() {}\n",
		"kit/internal/a.go": "package internal\nfunc F() {}\n", "cmd/a.go": "package main\nfunc F() {}\n",
		"props/a.go": "package props\nimport _ \"fmt\"\ntype t int\nfunc (t) String() string { return \"\" }\n",
	}, nil},
}

var codeSnippets = []snippet{
	{Lengths, "file", files{"alloc/a_test.go": "package alloc\n" + strings.Repeat("\n", 600)},
		[]string{"alloc/a_test.go:0 601 lines"}},
	{Lengths, "function", files{"alloc/a.go": "package alloc\n" + long("f", 81) + strings.Repeat(long("g", 2), 30)},
		[]string{"alloc/a.go:2 f has 81 lines"}},
	{Lengths, "percentile", files{"alloc/a.go": "package alloc\n" + long("f", 61) + long("g", 61) +
		strings.Repeat(long("h", 2), 18)},
		[]string{"alloc/a.go:2 percentile of functions has 61"}},
	{Lengths, "readme", files{"README.md": strings.Repeat("word ", 901)},
		[]string{"README.md:0 901 words"}},
	{Lengths, "at the limits", files{
		"README.md":  strings.Repeat("word\n", 900),
		"alloc/a.go": "package alloc\n" + long("f", 80) + strings.Repeat(long("h", 2), 19),
		"alloc/b.go": "package alloc\n" + strings.Repeat("\n", 599),
		"alloc/c.go": "// Code generated by hand. DO NOT EDIT.\n\npackage alloc\n" + strings.Repeat("\n", 700) +
			long("g", 90),
	}, nil},
	{Widths, "code and comments, tests too", files{
		"alloc/a.go":      "package alloc\n\n" + wide("var s = \"", 111) + "\"\n\n" + wide("// s is", 101) + "\n",
		"alloc/a_test.go": "package alloc\n\nvar t = `\n`; " + wide("var u = \"", 120) + "\"\n",
	}, []string{"a.go:3 code of 121 columns: want at most 120", "a.go:5 comment of 108 columns",
		"a_test.go:4 code of 132"}},
	{Widths, "what cannot be broken", files{"alloc/a.go": "package alloc\n\n" + wide("//go:generate ", 120) + "\n" +
		wide("//\tcode x", 120) + "\n" + wide("//   code x", 120) + "\n" + wide("// ", 120) + "\n" +
		"func f() {\n\t// Output:\n\t" + wide("// a b", 120) + "\n}\n" +
		wide("var s = `", 130) + "`\n" + wide("var t = `\n", 130) + "`\n" + wide("var u = \"", 110) + "\"\n"}, nil},
	{Pointers, "unsafe and uintptr",
		files{"device/a.go": goFile("device", "var x uintptr\nvar y = unsafe.Sizeof(x)\n", "unsafe")},
		[]string{"device/a.go:2 imports unsafe", "device/a.go:3 uses uintptr"}},
	{Pointers, "in tests too", files{"device/a_test.go": goFile("device", "var x uintptr\n")},
		[]string{"device/a_test.go:2 uses uintptr"}},
	{Pointers, "in its rooms", files{
		"device/cuda/a.go":          goFile("cuda", "var x uintptr\n", "unsafe"),
		"strategies/plugin/a.go":    goFile("plugin", "var x uintptr\n", "unsafe"),
		"cmd/libvramyard/a_test.go": goFile("main", "var x uintptr\n", "unsafe"),
	}, nil},
	{Inits, "outside tests", files{"alloc/a.go": "package alloc\nfunc init() {}\n"},
		[]string{"alloc/a.go:2 init function"}},
	{Inits, "methods and tests", files{"alloc/a.go": "package alloc\ntype t int\nfunc (t) init() {}\n",
		"alloc/a_test.go": "package alloc\nfunc init() {}\n"}, nil},
	{Clocks, "read and waited for",
		files{"device/sim/a.go": goFile("sim", "import clock \"time\"\nvar x = clock.Now()\nfunc f() { clock.Sleep(1) }\n")},
		[]string{"device/sim/a.go:3 time.Now", "device/sim/a.go:4 time.Sleep"}},
	{Clocks, "durations, tests, other rooms", files{
		"alloc/a.go":          goFile("alloc", "var x time.Duration\n", "time"),
		"alloc/a_test.go":     goFile("alloc", "var y = time.Now()\n", "time"),
		"harness/replay/a.go": goFile("replay", "var y = time.Now()\n", "time"),
		"device/cuda/a.go":    goFile("cuda", "var y = time.Now()\n", "time"),
	}, nil},
	{StrategyImports, "surroundings, locks, chance",
		files{"strategies/x/a.go": goFile("x", "func f() { go f() }\n", "os", "sync", "math/rand/v2", "time")},
		[]string{"a.go:2 imports os", "a.go:3 imports sync", "a.go:4 imports math/rand/v2", "a.go:5 imports time",
			"a.go:6 goroutine"}},
	{StrategyImports, "tests and plugins", files{
		"strategies/x/a_test.go": goFile("x", "func f() { go f() }\n", "os"),
		"strategies/plugin/a.go": goFile("plugin", "", "os"),
	}, nil},
	{CommentShare, "none", files{"strategies/x/a.go": "package x\nvar a = 1\nvar b = 2\n"},
		[]string{"strategies/x:0 0.0 % of the lines"}},
	{CommentShare, "drowned", files{"strategies/x/a.go": "// Package x\n// is\n/* so\n */\npackage x\n"},
		[]string{"strategies/x:0 80.0 % of the lines"}},
	{CommentShare, "between", files{
		"strategies/x/a.go":      "// Package x is.\npackage x\n\nvar a = 1 // one\n\nvar b = `\n// no comment\n`\n",
		"strategies/x/a_test.go": "package x\n",
		"strategies/all.go":      "package strategies\n",
	}, nil},
}

var mapSnippets = []snippet{
	{MapRanges, "identifier, field, result, alias", files{
		"internal/tool/a.go": "package tool\n// Made is a map.\ntype Made map[int]int\n// Make makes one.\nfunc Make() " +
			"Made { return nil }\n",
		"strategies/x/a.go": goFile("x", `type s struct { m map[int]int }
func f(m map[int]int, s s) {
	for k := range m { _ = k }
	for range s.m {}
	for k := range tool.Make() { _ = k }
	n := maps.Clone(m)
	for _, v := range n { _ = v }
}
func g[M ~map[int]int](m M) { for range m {} }
`, "maps", "our:internal/tool"),
	}, []string{"a.go:6 ranges", "a.go:7 ranges", "a.go:8 ranges", "a.go:10 ranges", "a.go:12 ranges"}},
	{MapRanges, "iterator", files{
		"strategies/x/a.go": goFile("x", "func f(m map[int]int) { for range maps.Keys(m) {} }\n", "maps")},
		[]string{"a.go:3 maps.Keys without slices.Sorted"}},
	{MapRanges, "slices, sorted keys, tests, other rooms", files{
		"strategies/x/a.go": goFile("x", `func f(m map[int]int, s []int) {
	for range s {}
	for range slices.Sorted(maps.Keys(m)) {}
	for range len(m) {}
	_ = m[1]
}
`, "maps", "slices"),
		"strategies/x/a_test.go": "package x\nfunc g(m map[int]int) { for range m {} }\n",
		"harness/a.go":           "package harness\nfunc g(m map[int]int) { for range m {} }\n",
	}, nil},
}

// The words and paths are put together here, so that this file keeps the rules.
var textSnippets = []snippet{
	{Todos, "bare", files{"alloc/a.go": "package alloc\n// " + "TODO fix\n// " + "FIXME: this is quite wrong here\n"},
		[]string{"a.go:2 without a sentence", "a.go:3 says FIXME"}},
	{Todos, "explained", files{"alloc/a.go": "package alloc\n// " + "TODO: merge with the neighbour once regions " +
		"can grow.\nvar s = \"" + "FIXME\"\n"}, nil},
	{PlainEnglish, "riddles", files{
		"alloc/a.go": "package alloc\n// Get returns the sum of what is there.\nvar s = \"the region tells no one\"\n",
		"docs/a.md":  "Nobody.\nThe sum is that of both.\n```\nwhatever\n```\n"},
		[]string{"alloc/a.go:2 comments have 1.0", "alloc/a.go:3 string literals have", "docs/a.md:2 the pages have 1.0"}},
	{PlainEnglish, "a rare one",
		files{"docs/a.md": strings.Repeat("Free chunks are adjacent.\n", 600) + "They tell.\n"}, nil},
	{MachinePaths, "somebody's", files{"docs/a.md": "x\nsee /" + "home/me/x\n", "a.yml": "path: \"/" + "tmp/x\"\n",
		"docs/b.md": "`../" + "shared/x`"},
		[]string{"a.yml:1 names a path", "docs/a.md:2 names a path", "docs/b.md:1 names a path"}},
	{MachinePaths, "everybody's", files{"docs/a.md": "https://example.org/" + "home/x, out/" + "tmp/y, ./" + "work/z",
		"a.bin": "\x00 /" + "tmp/x"}, nil},
	{Links, "broken", files{
		"docs/a.md": "# A\n[b](b.md) ![c](c.png)\n[`d`](#d) [up](../../x)\n\n[e]: e.md\n<img src=\"f.svg\"> " +
			"[root](/docs/a.md)\n",
		"docs/b.txt": "see docs/b.md and https://github.com/x/y/blob/main/docs/a.md#b",
		"docs/c.md":  "# One `two`, [three](a.md)!\n# Same\n# Same\n[x](a.md#A) [y](c.md#same-2) [z](../go.mod#x)\n"},
		[]string{"docs/a.md:2 b.md leads to docs/b.md", "docs/a.md:2 docs/c.png, which", "docs/a.md:3 #d leads to no heading",
			"docs/a.md:3 ../../x", "docs/a.md:5 e.md", "docs/a.md:6 f.svg", "docs/a.md:6 absolute", "docs/b.txt:1 docs/b.md",
			"docs/b.txt:1 docs/a.md#b leads to no heading", "docs/c.md:4 a.md#A", "docs/c.md:4 #same-2",
			"docs/c.md:4 go.mod#x"}},
	{Links, "sound", files{
		"README.md": "# One `two`, [three](docs/a.md)!\n# Same\n# Same\n[1](#one-two-three) [2](#same-1) [`3`](docs) " +
			"[4](docs/a%20b.png \"title\") [5](https://example.org/#x)\n[6][a]\n\n[a]: docs/a.md#ü--x_y\n",
		"docs/a.md": "# Ü & x_y\n`` [`x`](y) ``\n~~~\n```\n[x](y)\n# No heading\n~~~\n`[a\nb](c)` " +
			"[go](x.go#L7)\n",
		"docs/a b.png": "\x00", "docs/x.go": "package docs // see docs/a.md and x/docs/c.md\n"}, nil},
	{Index, "forgotten", files{"docs/README.md": "# Index\n[one](x/README.md)\n", "docs/x/README.md": "# X\n",
		"docs/a.md": "# A\n", "docs/x/y.md": "# Y\n", "docs/z/z.md": "# Z\n", "README.md": "[A](docs/a.md)"},
		[]string{"README.md:0 docs/README.md", "docs/a.md:0 docs/README.md",
			"docs/x/y.md:0 docs/x/README.md", "docs/z/z.md:0 docs/README.md"}},
	{Index, "another title", files{"docs/README.md": "[D](decisions/README.md)",
		"docs/decisions/README.md": "[1](1.md)", "docs/decisions/1.md": "# 1: One\n"},
		[]string{"docs/decisions/1.md:1 want [1: One](1.md)"}},
	{Index, "complete", files{"README.md": "[all](docs/README.md)",
		"docs/README.md":           "[X](x/README.md), [A](a.md#a) [Z](z/z.md) [D](decisions/README.md)",
		"docs/decisions/README.md": "# D\n- [1: One](1.md)", "docs/decisions/1.md": "# 1: One\n", "docs/a.md": "# A\n",
		"docs/x/README.md": "[y](y.md)", "docs/x/y.md": "# Y\n", "docs/z/z.md": "# Z\n", "b.md": "# B\n"}, nil},
	{Map, "missing and stale",
		files{"alloc/a.go": "package alloc\n", "docs/architecture.md": "# Map\n\n| `attic` | old |\n"},
		[]string{"docs/architecture.md:0 no row for alloc", "docs/architecture.md:3 a row for attic"}},
	{Map, "complete", files{
		"alloc/a.go": "package alloc\n", "docs/architecture.md": "| `alloc` | contract |\n",
		"tools/go.mod": "module x\n", "tools/x/a.go": "package x\n", "alloc/testdata/a.go": "package y\n",
	}, nil},
}

func allSnippets() []snippet {
	return slices.Concat(floorSnippets, docSnippets, codeSnippets, mapSnippets, textSnippets)
}

func TestRulesFindViolations(t *testing.T) {
	for _, s := range allSnippets() {
		t.Run(s.rule.Name+"/"+s.name, func(t *testing.T) {
			var got []string
			for _, f := range s.rule.Run(s.load(t)) {
				got = append(got, fmt.Sprintf("%s:%d %s", f.File, f.Line, f.Text))
			}
			for i, g := range got {
				if i >= len(s.want) || !matches(g, s.want[i]) {
					t.Errorf("unexpected finding %s", g)
				}
			}
			if len(got) < len(s.want) {
				t.Errorf("not found: %q", s.want[len(got):])
			}
		})
	}
}

// load parses the tree of the snippet.
func (s snippet) load(t *testing.T) *Repository {
	t.Helper()
	fsys := fstest.MapFS{"go.mod": {Data: []byte("module example.org/house\n")}}
	for name, content := range s.files {
		fsys[name] = &fstest.MapFile{Data: []byte(content)}
	}
	h, err := Load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// matches reports whether a finding is the wanted one: its place ends like that of want,
// and its text contains that of want.
func matches(got, want string) bool {
	place, text, _ := strings.Cut(got, " ")
	wantPlace, wantText, _ := strings.Cut(want, " ")
	return strings.HasSuffix(place, wantPlace) && strings.Contains(text, wantText)
}

func TestEveryRuleCanFail(t *testing.T) {
	for _, r := range Rules() {
		broken, sound := false, false
		for _, s := range allSnippets() {
			if s.rule.Name == r.Name {
				broken = broken || len(s.want) > 0
				sound = sound || len(s.want) == 0
			}
		}
		if !broken || !sound {
			t.Errorf("rule %q: broken snippet %v, sound snippet %v: want both", r.Name, broken, sound)
		}
	}
}

func TestJudgeSeparatesOpenExcusedAndStale(t *testing.T) {
	s := snippet{files: files{"alloc/a.go": "package alloc\nfunc init() {}\n",
		"alloc/b.go": "package alloc\nfunc init() {}\n"}}
	needed := Exception{Rule: Inits.Name, File: "alloc/a.go", Text: "init function"}
	other := []Exception{
		{Rule: Clocks.Name, File: "alloc/b.go"},
		{Rule: Inits.Name, File: "alloc/b"},
		{Rule: Inits.Name, File: "alloc/b.go", Text: "elsewhere"},
	}
	open, stale := Judge(s.load(t), []Rule{Inits}, append(other, needed))
	if len(open) != 1 || open[0].File != "alloc/b.go" {
		t.Errorf("open findings %v: want the one of alloc/b.go", open)
	}
	if !slices.Equal(stale, other) {
		t.Errorf("stale exceptions %v: want %v", stale, other)
	}
}
