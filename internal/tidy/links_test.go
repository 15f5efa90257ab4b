package tidy

import (
	"bytes"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"
	"unicode"
)

// Links checks that links lead somewhere.
var Links = Rule{
	Name: "links",
	Doc: "every relative link and every image of a Markdown page leads to a file of the repository, every anchor to a " +
		"heading, and every page named in another text exists",
	Check: func(h *Repository, report Report) {
		anchors := map[string]map[string]bool{}
		for _, t := range h.Texts {
			if path.Ext(t.Name) == ".md" {
				anchors[t.Name] = anchorsOf(t.Content)
			}
		}
		for _, t := range h.Texts {
			for _, l := range linksOf(t) {
				if problem := l.problem(h, t.Name, anchors); problem != "" {
					report(t.Name, l.line, "%s", problem)
				}
			}
		}
	},
}

// Index checks that a reader finds every page.
var Index = Rule{
	Name: "index",
	Doc: "README.md links docs/README.md, which links every page of docs, except strategies and decisions: it links " +
		"their index, which links all of them, decisions by their title",
	Check: func(h *Repository, report Report) {
		linked := map[string]map[string]bool{} // by index
		var decisions []byte                   // their index
		for _, t := range h.Texts {
			if path.Base(t.Name) != "README.md" {
				continue
			}
			linked[t.Name] = map[string]bool{}
			if t.Name == "docs/decisions/README.md" {
				decisions = t.Content
			}
			for _, l := range linksOf(t) {
				name, _ := l.target(t.Name)
				linked[t.Name][name] = true
			}
		}
		if of, ok := linked["README.md"]; ok && !of["docs/README.md"] {
			report("README.md", 0, "does not link docs/README.md")
		}
		for _, t := range h.Texts {
			if !Under(t.Name, "docs") || path.Ext(t.Name) != ".md" || t.Name == "docs/README.md" {
				continue
			}
			index := path.Join(path.Dir(t.Name), "README.md")
			if t.Name == index || linked[index] == nil {
				index = "docs/README.md"
			}
			if !linked[index][t.Name] {
				report(t.Name, 0, "%s does not link this page", index)
				continue
			}
			title, _, _ := bytes.Cut(bytes.TrimPrefix(t.Content, []byte("# ")), []byte("\n"))
			want := fmt.Sprintf("[%s](%s)", title, path.Base(t.Name))
			if index == "docs/decisions/README.md" && !bytes.Contains(decisions, []byte(want)) {
				report(t.Name, 1, "%s does not link this record by its title: want %s", index, want)
			}
		}
	},
}

// link is a link of a text, or the name of a page in it.
type link struct {
	line   int
	to     string
	atRoot bool // to is relative to the root instead of to the file
}

var (
	// linkTarget finds the targets of inline links and images, of reference definitions and of HTML.
	linkTarget = regexp.MustCompile(`\]\(\s*<?([^()<>\s]+)>?(?:\s+"[^"\n]*")?\s*\)|(?m:^ {0,3}\[[^\]\n]+\]:\s*(\S+))|` +
		`<[^<>]*\b(?:src|href)="([^"\n]*)"`)

	// pageName finds the pages of docs that texts other than Markdown name.
	pageName = regexp.MustCompile(`(?:^|[^\w./-]|/blob/main/)(docs/[\w/-]+\.md(?:#[\w-]+)?)`)

	scheme   = regexp.MustCompile(`^(?:[a-zA-Z][a-zA-Z0-9+.-]*:|//)`)
	heading  = regexp.MustCompile(`(?m)^ {0,3}#{1,6}[ \t]+(.*?)[ \t#]*$`)
	inlined  = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`) // a link inside a heading
	anchor   = regexp.MustCompile(`<a\s[^>]*\b(?:id|name)="([^"]+)"`)
	lineSpan = regexp.MustCompile(`^L[0-9]+(?:-L[0-9]+)?$`)
)

// linksOf returns the links of a Markdown page outside code, or the pages that another text names.
func linksOf(t Text) (all []link) {
	content, find := t.Content, pageName
	if path.Ext(t.Name) == ".md" {
		content, find = withoutCode(t.Content), linkTarget
	}
	for _, m := range find.FindAllSubmatchIndex(content, -1) {
		for i := 2; i < len(m); i += 2 {
			if m[i] >= 0 {
				line := bytes.Count(content[:m[i]], []byte("\n")) + 1
				all = append(all, link{line, string(content[m[i]:m[i+1]]), find == pageName})
			}
		}
	}
	return all
}

// target returns the file or directory that a link in file from leads to, relative to the root, and
// its anchor. The name is empty for a link that leaves the repository.
func (l link) target(from string) (name, fragment string) {
	if scheme.MatchString(l.to) {
		return "", ""
	}
	to, fragment, _ := strings.Cut(l.to, "#")
	if plain, err := url.PathUnescape(to); err == nil {
		to = plain
	}
	switch {
	case l.atRoot:
		return path.Clean(to), fragment
	case to == "":
		return from, fragment
	}
	return path.Join(path.Dir(from), to), fragment
}

// problem returns what is wrong with a link in file from, or nothing.
func (l link) problem(h *Repository, from string, anchors map[string]map[string]bool) string {
	name, fragment := l.target(from)
	switch {
	case name == "":
		return ""
	case strings.HasPrefix(l.to, "/"):
		return fmt.Sprintf("the link %s is absolute: want a path relative to this file", l.to)
	case !h.Names[name]:
		return fmt.Sprintf("the link %s leads to %s, which does not exist", l.to, name)
	case fragment == "" || anchors[name][fragment]:
		return ""
	case path.Ext(name) == ".go" && lineSpan.MatchString(fragment):
		return ""
	}
	return fmt.Sprintf("the link %s leads to no heading of %s", l.to, name)
}

// anchorsOf returns the anchors of a page: those of its headings, as GitHub derives them, and those
// in HTML.
func anchorsOf(content []byte) map[string]bool {
	all := map[string]bool{}
	// Code inside a heading counts, so only fenced code is removed.
	plain := withoutFences(content)
	for _, m := range heading.FindAllSubmatch(plain, -1) {
		base := slug(inlined.ReplaceAllString(string(m[1]), "$1"))
		name := base
		for n := 1; all[name]; n++ {
			name = fmt.Sprintf("%s-%d", base, n)
		}
		all[name] = true
	}
	for _, m := range anchor.FindAllSubmatch(plain, -1) {
		all[string(m[1])] = true
	}
	return all
}

// slug returns the anchor of a heading by GitHub's rule: lower case, hyphens for spaces, other
// punctuation dropped.
func slug(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.In(r, unicode.L, unicode.M, unicode.N):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(title))
}

// withoutFences returns a page with the lines of its fenced code emptied, which keeps line numbers.
func withoutFences(content []byte) []byte {
	var out []byte
	fence := ""
	for line := range bytes.Lines(content) {
		start := string(bytes.TrimLeft(line, " \t>"))
		run := start[:len(start)-len(strings.TrimLeft(start, "`~"))]
		switch {
		case fence == "" && len(run) >= 3 && !strings.Contains(start[len(run):], "`"):
			fence, line = run, []byte("\n")
		case fence != "" && strings.HasPrefix(run, fence) && strings.TrimSpace(start[len(run):]) == "":
			fence, line = "", []byte("\n")
		case fence != "":
			line = []byte("\n")
		}
		out = append(out, line...)
	}
	return out
}

// withoutCode returns a page without fenced code and code spans, with the same line numbers. A code
// span ends at a run of as many backticks in the same paragraph.
func withoutCode(content []byte) []byte {
	out := withoutFences(content)
	for i := 0; i < len(out); i++ {
		if out[i] != '`' {
			continue
		}
		n := ticks(out[i:])
		paragraph := out[i+n:]
		if end := bytes.Index(paragraph, []byte("\n\n")); end >= 0 {
			paragraph = paragraph[:end]
		}
		for j := 0; j < len(paragraph); j++ {
			if m := ticks(paragraph[j:]); m == n {
				for k := range paragraph[:j] {
					if paragraph[k] != '\n' {
						paragraph[k] = ' '
					}
				}
				n += j + m
				break
			} else if m > 0 {
				j += m - 1
			}
		}
		i += n - 1
	}
	return out
}

// ticks returns the number of backticks at the start of b.
func ticks(b []byte) int { return len(b) - len(bytes.TrimLeft(b, "`")) }
