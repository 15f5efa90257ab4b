package planted

// The settings of the two-level segregated fit.
var (
	tlsfSmall   = Setting{"tlsf", `{"limit":65536}`, `{"capacity":65536,"align":256}`}
	tlsfHole    = Setting{"tlsf", `{"limit":65536,"tail":"hole","second_level":1}`, `{"capacity":65536,"align":256}`}
	tlsfAddress = Setting{"tlsf", `{"limit":65536,"list":"address"}`, `{"capacity":65536,"align":256}`}
	tlsfAll     = Setting{"tlsf:exhaustive", `{"limit":4096,"second_level":1}`, `{"capacity":4096,"align":256}`}
	tlsfHuge    = Setting{"tlsf", `{"limit":2199023255552}`, `{"capacity":2199023255552,"align":256}`}
)

// tlsfBugs returns bugs of the two-level segregated fit.
func tlsfBugs() []Bug {
	return []Bug{
		{ID: "tlsf/misses-right", Setting: tlsfSmall, Breaks: []string{"I5", "K2"}, Minimal: "a 1",
			Doc: "a freed chunk is not merged with the free one behind it"},
		{ID: "tlsf/misses-left", Setting: tlsfSmall, Breaks: []string{"I5", "K2"}, Minimal: "a 1\na 1",
			Doc: "a freed chunk is not merged with the free one before it"},
		{ID: "tlsf/keeps-a-quantum", Setting: tlsfSmall, Breaks: []string{"I13"}, Minimal: "a 257\na 1\nf 0\na 1",
			Doc: "a remainder of one quantum is left with the block"},
		{ID: "tlsf/lost-hole", Setting: tlsfSmall, Breaks: []string{"I7", "L1"}, Minimal: "a 1\na 1",
			Doc: "a hole is put into no list"},
		{ID: "tiles/unlinked-one-way", Setting: tlsfSmall, Breaks: []string{"L1"}, Minimal: "a 1\na 1",
			Doc: "the chunk behind one that leaves a list goes on to name it"},
		{ID: "tlsf/bit-not-set", Setting: tlsfHole, Breaks: []string{"I7", "I9", "L2"}, Minimal: "a 1",
			Doc: "no bit is set for a list that gets its first chunk"},
		{ID: "tlsf/bit-left", Setting: tlsfHole, Breaks: []string{"L2"}, Minimal: "a 1",
			Doc: "the bit of a list stays when the list becomes empty"},
		{ID: "tlsf/unordered", Setting: tlsfAddress, Breaks: []string{"I8", "L3"}, Minimal: "a 1\na 1\na 1\na 1\nf 0\nf 1",
			Doc: "a chunk heads its list whatever its address"},
		{ID: "tlsf/tail-among-holes", Setting: tlsfSmall, Breaks: []string{"L4"}, Minimal: "a 1",
			Doc: "the end of a region is put into a list"},
		{ID: "tlsf/looks-at-one", Setting: tlsfAll, Breaks: []string{"I26"},
			Minimal: "a 1280\na 1\na 1024\na 1536\nf 0\nf 1\na 1280",
			Doc:     "of a list that should be searched only the head is looked at"},
		{ID: "tlsf/passes-exact-tail", Setting: tlsfSmall, Breaks: []string{"I26"}, Minimal: "a 65536\nf 0\na 65536",
			Doc: "the end of a region of exactly the size asked for is passed over"},
		{ID: "tlsf/hole-of-head", Setting: tlsfHole, Breaks: []string{"I9"}, Minimal: "a 20480\na 1\na 16384\na 24576\nf 0\nf 1",
			Doc: "the largest hole is the head of the highest list"},
		{ID: "tlsf/no-class-above-half-tebibyte", Setting: tlsfHuge, Breaks: []string{"I26"},
			Minimal: "a 1395864371200\na 1\nf 0\na 858993459200",
			Doc:     "chunks of 512 GiB and more are all of one class"},
	}
}
