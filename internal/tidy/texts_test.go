package tidy

import (
	"bytes"
	"regexp"
	"strings"
)

// todo finds the markers of unfinished work, and their explanation.
var todo = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b(?:\([^)]*\))?:?\s*([^\n]*)`)

// todoWords is the fewest words that explain what is to do and why it is not done.
const todoWords = 4

// Todos checks that unfinished work is explained.
var Todos = Rule{
	Name: "todo",
	Doc:  "unfinished work is marked TODO, with a sentence that explains it",
	Check: func(h *Repository, report Report) {
		h.each(true, func(_ *Package, f *File) {
			for _, group := range f.AST.Comments {
				for _, c := range group.List {
					for _, m := range todo.FindAllStringSubmatch(c.Text, -1) {
						line := h.Line(c.Pos())
						if m[1] != "TODO" {
							report(f.Name, line, "says %s: say TODO, what and why", m[1])
						} else if len(strings.Fields(m[2])) < todoWords {
							report(f.Name, line, "TODO without a sentence that says what and why")
						}
					}
				}
			}
		})
	},
}

// machinePath finds absolute paths of one machine, and paths that lead out of the repository.
var machinePath = regexp.MustCompile(`(?m)(?:^|[^\w./-])(/(?:` + `work|root|home|tmp|Users` + `)/|\.\./` + `shared\b)`)

// MachinePaths checks that nothing depends on where the tree lies.
var MachinePaths = Rule{
	Name: "machine paths",
	Doc:  "no text file contains a path of a developer's machine",
	Check: func(h *Repository, report Report) {
		for _, t := range h.Texts {
			for _, m := range machinePath.FindAllSubmatchIndex(t.Content, -1) {
				line := bytes.Count(t.Content[:m[2]], []byte("\n")) + 1
				report(t.Name, line, "names a path of one machine: %s", t.Content[m[2]:m[3]])
			}
		}
	},
}

// mapFile is the page with the map of the house.
const mapFile = "docs/architecture.md"

// mapRow finds the rows of the map: table rows whose first cell is a directory.
var mapRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

// Map checks that the map of the house is complete.
var Map = Rule{
	Name: "map",
	Doc:  "docs/architecture.md has a row for every package, and for no other",
	Check: func(h *Repository, report Report) {
		line := map[string]int{}
		for _, t := range h.Texts {
			if t.Name != mapFile {
				continue
			}
			for _, m := range mapRow.FindAllSubmatchIndex(t.Content, -1) {
				line[string(t.Content[m[2]:m[3]])] = bytes.Count(t.Content[:m[2]], []byte("\n")) + 1
			}
		}
		for _, p := range h.Packages {
			if p.Dir != "." && line[p.Dir] == 0 {
				report(mapFile, 0, "has no row for %s", p.Dir)
			}
		}
		for dir, at := range line {
			if h.Package(dir) == nil {
				report(mapFile, at, "has a row for %s, where no package is", dir)
			}
		}
	},
}
