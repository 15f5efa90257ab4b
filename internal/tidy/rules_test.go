package tidy

import "strings"

// Rules returns every rule of the house.
func Rules() []Rule {
	return []Rule{
		Floors,
		PackageComments,
		DocComments,
		Examples,
		Lengths,
		Widths,
		Pointers,
		MapRanges,
		Todos,
		PlainEnglish,
		MachinePaths,
		CommentShare,
		Map,
		Links,
		Index,
		Inits,
		Clocks,
		StrategyImports,
	}
}

// Exception excuses findings of one rule.
type Exception struct {
	Rule   string // name of the rule
	File   string // file or directory that is excused
	Text   string // part of the finding's text; "" excuses every finding of the rule there
	Reason string // why
}

// Exceptions returns all that the house excuses.
func Exceptions() []Exception {
	return []Exception{
		{Links.Name, "internal/tidy/broken_test.go", "", "its snippets break the rules"},
		{Clocks.Name, "alloc/wrap/retrying.go", "", "a deadline is what Retrying is for"},
		{StrategyImports.Name, "strategies/slab/xdl/locked.go", "sync", "the original's segments have locks of their own"},
		{StrategyImports.Name, "strategies/slabbuddy/xdl/locked.go", "sync", "it is composed of such segments"},
	}
}

// Excuses reports whether the exception covers a finding.
func (e Exception) Excuses(f Finding) bool {
	return e.Rule == f.Rule && Under(f.File, e.File) && strings.Contains(f.Text, e.Text)
}

// Judge runs every rule over h. It returns the findings that nothing excuses, and the
// exceptions that excuse nothing.
func Judge(h *Repository, rules []Rule, exceptions []Exception) (open []Finding, stale []Exception) {
	used := make([]bool, len(exceptions))
	for _, r := range rules {
		for _, f := range r.Run(h) {
			excused := false
			for i, e := range exceptions {
				if e.Excuses(f) {
					used[i], excused = true, true
				}
			}
			if !excused {
				open = append(open, f)
			}
		}
	}
	for i, e := range exceptions {
		if !used[i] {
			stale = append(stale, e)
		}
	}
	return open, stale
}
