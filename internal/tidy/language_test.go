package tidy

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
)

// riddles are the turns of phrase that a reader has to decode: clauses in place of nouns, pronouns
// in place of names, and things that speak. CONTRIBUTING.md shows better ones.
var riddles = []*regexp.Regexp{
	regexp.MustCompile(`(?:^|[.;:,(] |\b(?:and|of|by|in|with|that|is) )[Ww]hat ` +
		`(?:is|was|has|are|they|it|no|a|the|one|only|some|would|can|may|cannot|goes|comes|lies|stands|others|users)\b`),
	regexp.MustCompile(`\b(?:th(?:at|ose) of|those that|ones? that|that which|as that)\b`),
	regexp.MustCompile(`\b(?:tells|told|tell)\b`),
	regexp.MustCompile(`\b(?:nobody|somebody|anybody|whoever|whatever|wherever)\b`),
	regexp.MustCompile(`(?:^|\. )(?:What|Who|Where|Whoever) \w+ `),
	regexp.MustCompile(`\b(?:is|are|was) none\b`),
	regexp.MustCompile(`\bso (?:many|much|few)\b`),
	regexp.MustCompile(`\b(?:besides|anew|meanwhile|thereby|therein|hitherto)\b`),
	regexp.MustCompile(`\bof no meaning\b`),
}

// mostRiddles is the number of riddles in 1,000 words that a kind of text may have. The Go runtime
// has 0.4 in its comments.
const mostRiddles = 0.5

var word = regexp.MustCompile(`[A-Za-z']+`)

// prose counts the words and the riddles of one kind of text.
type prose struct {
	name  string
	words int
	found []Finding
}

// add counts a line of text.
func (p *prose) add(file string, line int, text string) {
	p.words += len(word.FindAllString(text, -1))
	for _, r := range riddles {
		for _, hit := range r.FindAllString(text, -1) {
			p.found = append(p.found, Finding{File: file, Line: line, Text: strings.TrimSpace(hit)})
		}
	}
}

// PlainEnglish checks that texts are written in the field's English. A few riddles are allowed,
// because a pattern cannot judge a sentence.
var PlainEnglish = Rule{
	Name: "plain English",
	Doc: "comments, string literals and Markdown each have at most 0.5 turns of phrase in 1,000 words that a reader " +
		"has to decode",
	Check: func(h *Repository, report Report) {
		comments, literals, markdown := prose{name: "comments"}, prose{name: "string literals"}, prose{name: "pages"}
		h.each(false, func(_ *Package, f *File) {
			for _, group := range f.AST.Comments {
				for _, c := range group.List {
					comments.add(f.Name, h.Line(c.Pos()), strings.TrimSpace(strings.TrimPrefix(c.Text, "//")))
				}
			}
			ast.Inspect(f.AST, func(n ast.Node) bool {
				// Short literals are names and keys.
				if s, ok := n.(*ast.BasicLit); ok && s.Kind == token.STRING && strings.Count(s.Value, " ") > 3 {
					literals.add(f.Name, h.Line(s.Pos()), s.Value[1:len(s.Value)-1])
				}
				return true
			})
		})
		for _, t := range h.Texts {
			if strings.HasSuffix(t.Name, ".md") {
				markdown.addPage(t)
			}
		}
		for _, p := range []prose{comments, literals, markdown} {
			rate := 1000 * float64(len(p.found)) / float64(max(p.words, 1000))
			if rate <= mostRiddles {
				continue
			}
			for _, f := range p.found {
				report(f.File, f.Line, "%q: the %s have %.1f such turns of phrase in 1,000 words, want at most %.1f", f.Text,
					p.name, rate, mostRiddles)
			}
		}
	},
}

// addPage counts the lines of a page outside of code blocks.
func (p *prose) addPage(t Text) {
	code := false
	for i, line := range strings.Split(string(t.Content), "\n") {
		if strings.HasPrefix(line, "```") {
			code = !code
		} else if !code {
			p.add(t.Name, i+1, line)
		}
	}
}
