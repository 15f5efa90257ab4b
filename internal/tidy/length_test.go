package tidy

import (
	"bytes"
	"go/ast"
	"go/scanner"
	"go/token"
	"path"
	"slices"
)

// The limits of lengths, in lines.
const (
	maxFile     = 600 // a file longer than that holds two subjects
	maxFunction = 80  // a function longer than that does two things
	p95Function = 60  // 19 of 20 functions are at most this long
	maxReadme   = 900 // words; the rest belongs under docs
)

// Lengths checks that files and functions stay readable.
var Lengths = Rule{
	Name: "lengths",
	Doc: "files have at most 600 lines, functions at most 80, 95 % of the functions at most 60; " +
		"README.md has at most 900 words",
	Check: func(h *Repository, report Report) {
		h.each(true, func(_ *Package, f *File) {
			if n := lines(f.Source); n > maxFile && !f.Generated {
				report(f.Name, 0, "%d lines: want at most %d", n, maxFile)
			}
		})
		all := Functions(h)
		for _, fn := range all {
			if fn.Lines > maxFunction {
				report(fn.File, fn.Line, "%s has %d lines: want at most %d", fn.Name, fn.Lines, maxFunction)
			}
		}
		if p := Percentile(all, 95); p.Lines > p95Function {
			report(p.File, p.Line, "the 95th percentile of functions has %d lines: want at most %d", p.Lines, p95Function)
		}
		for _, t := range h.Texts {
			if n := len(bytes.Fields(t.Content)); t.Name == "README.md" && n > maxReadme {
				report(t.Name, 0, "%d words: want at most %d", n, maxReadme)
			}
		}
	},
}

func lines(content []byte) int {
	n := bytes.Count(content, []byte("\n"))
	if len(content) > 0 && content[len(content)-1] != '\n' {
		n++
	}
	return n
}

// Function is a function declaration with its length.
type Function struct {
	Name  string // without the receiver
	File  string // relative to the root
	Line  int    // of the word func
	Lines int    // from the word func to the closing brace
}

// Functions returns every function that a person wrote, tests included, shortest first.
func Functions(h *Repository) []Function {
	var all []Function
	h.each(true, func(_ *Package, f *File) {
		for _, decl := range f.AST.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil || f.Generated {
				continue
			}
			from := h.Line(fn.Pos())
			all = append(all, Function{fn.Name.Name, f.Name, from, h.Line(fn.End()) - from + 1})
		}
	})
	slices.SortStableFunc(all, func(a, b Function) int { return a.Lines - b.Lines })
	return all
}

// Percentile returns the function at a percentile of lengths, or the zero Function.
//
// Precondition: the functions are sorted by length, and 0 < percent <= 100.
func Percentile(sorted []Function, percent int) Function {
	if len(sorted) == 0 {
		return Function{}
	}
	return sorted[(len(sorted)*percent+99)/100-1]
}

// CommentShare checks that strategies explain themselves and do not drown in comments.
var CommentShare = Rule{
	Name: "comment share",
	Doc:  "of the lines of a strategy that are not blank, 15 to 45 % hold a comment (tests aside)",
	Check: func(h *Repository, report Report) {
		for _, p := range h.Packages {
			if path.Dir(p.Dir) != "strategies" {
				continue
			}
			if share, ok := Share(p); ok && (share < 15 || share > 45) {
				report(p.Dir, 0, "%.1f %% of the lines hold a comment: want 15 to 45", share)
			}
		}
	},
}

// Share returns how many percent of a package's lines that are not blank hold a comment,
// beside code or alone, and false if it has no code outside tests.
func Share(p *Package) (percent float64, ok bool) {
	comment, used := 0, 0
	for _, f := range p.Files {
		if !f.Test && !f.Generated {
			c, u := countLines(f.Source)
			comment += c
			used += u
		}
	}
	if used == 0 {
		return 0, false
	}
	return 100 * float64(comment) / float64(used), true
}

// countLines counts the lines of a Go file with a comment, and the lines that are not blank.
func countLines(source []byte) (comment, used int) {
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, scanner.ScanComments)
	inComment, inUse := map[int]bool{}, map[int]bool{}
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return len(inComment), len(inUse)
		}
		if tok == token.SEMICOLON && text == "\n" {
			continue // inserted by the scanner
		}
		from := file.Line(pos)
		for i := range bytes.Count([]byte(text), []byte("\n")) + 1 {
			inUse[from+i] = true
			if tok == token.COMMENT {
				inComment[from+i] = true
			}
		}
	}
}
