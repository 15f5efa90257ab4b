package tidy

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
)

// The longest lines, in bytes. A tab counts as one.
const (
	maxCodeWidth    = 120
	maxCommentWidth = 100
)

// unwrapped finds comment lines that cannot be wrapped: directives, code and tables (indented by a
// tab or two spaces), links, and a single word.
var unwrapped = regexp.MustCompile(`^\s*//(\S|\t|  +[^\s*-]|\s*\[[^\]]+\]: http|\s*\S*$)`)

// Widths checks the width of the lines.
var Widths = Rule{
	Name: "widths",
	Doc: "code has at most 120 columns, a comment on lines of its own at most 100; " +
		"raw strings, directives, preformatted comments and the output of examples do not count",
	Check: func(h *Repository, report Report) {
		h.each(true, func(_ *Package, f *File) {
			if f.Generated {
				return
			}
			raw, output := h.unbreakable(f)
			for i, line := range strings.Split(string(f.Source), "\n") {
				width := len(line) - raw[i+1]
				switch comment := strings.HasPrefix(strings.TrimSpace(line), "//"); {
				case !comment && width > maxCodeWidth:
					report(f.Name, i+1, "code of %d columns: want at most %d", width, maxCodeWidth)
				case comment && width > maxCommentWidth && !output[i+1] && !unwrapped.MatchString(line):
					report(f.Name, i+1, "comment of %d columns: want at most %d", width, maxCommentWidth)
				}
			}
		})
	},
}

// unbreakable returns the bytes of raw strings on each line, and the lines of comments that are the
// output of examples.
func (h *Repository) unbreakable(f *File) (raw map[int]int, output map[int]bool) {
	raw, output = map[int]int{}, map[int]bool{}
	ast.Inspect(f.AST, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && lit.Value[0] == '`' {
			at := h.Line(lit.Pos())
			for i, part := range strings.Split(lit.Value, "\n") {
				raw[at+i] += len(part)
			}
		}
		return true
	})
	for _, group := range f.AST.Comments {
		found := false
		for _, c := range group.List {
			found = found || strings.HasPrefix(c.Text, "// Output:") || strings.HasPrefix(c.Text, "// Unordered output:")
			output[h.Line(c.Pos())] = found
		}
	}
	return raw, output
}
