package caching

import (
	"slices"
	"strings"

	"github.com/vramyard/vramyard/alloc/setting"
)

// RuleSet is the rules that consecutive releases of PyTorch follow.
type RuleSet struct {
	Name    string   // value of [Config] Rules
	From    string   // first release
	To      string   // last release that was compared with the rules
	Changes []Change // differences from the rule set before; nil: the oldest one
}

// Change is a difference between a rule set and the one before.
type Change struct {
	Text    string // a sentence that begins with the release
	matters func(c Config, s settings, d setting.Demand) bool
}

// ruleSets lists the rule sets, oldest first.
var ruleSets = []RuleSet{
	{Rules26, "2.4", "2.9", nil},
	{Rules211, "2.10", "2.11", []Change{
		{"2.10 takes a memory fraction of 1 for no limit.",
			func(_ Config, s settings, _ setting.Demand) bool { return s.fraction == 1 }},
		{"2.10 gives a request to the redirection begun last, 2.9 to the one begun first.", withPools},
		{"2.10 applies the mark > in a list of divisions above the last entry only, 2.9 to that entry too.",
			func(c Config, _ settings, _ setting.Demand) bool { return strings.Contains(c.Conf, ">") }},
		{"2.10 leaves the blocks of a MemPool with no_split whole, 2.9 does not know the option.",
			func(_ Config, _ settings, d setting.Demand) bool { return d.Options.NoSplit }},
		{"2.10 takes no block of a MemPool with use_on_oom for a request outside of it while expandable_segments is on, " +
			"2.9 does.", func(_ Config, s settings, d setting.Demand) bool { return s.grew && d.Options.UseOnOOM }},
	}},
	{Rules212, "2.12", "2.12", []Change{
		{"2.12 takes among free blocks of one size the oldest, 2.11 the block at the lowest address.", always},
	}},
	{Rules213, "2.13", "2.15", []Change{
		{"2.13 takes among free blocks of one size the block in the oldest segment, 2.12 the oldest block.", always},
		{"2.13 completes frees that wait for streams and empties the cache while requests go to a MemPool, 2.12 does " +
			"neither.", withPools},
	}},
}

func always(Config, settings, setting.Demand) bool { return true }

func withPools(_ Config, _ settings, d setting.Demand) bool { return d.Pools }

// RuleSets returns the rule sets, oldest first. The slice is the caller's own.
func RuleSets() []RuleSet { return slices.Clone(ruleSets) }

// ChangesFor returns the changes from the rule set before that can affect a demand under a
// configuration, as sentences.
func (r RuleSet) ChangesFor(c Config, d setting.Demand) (sentences []string) {
	c.Rules = r.Name
	s, err := c.settings()
	for _, change := range r.Changes {
		if err == nil && change.matters(c, s, d) {
			sentences = append(sentences, change.Text)
		}
	}
	return sentences
}
