package planted

// The settings of stream-ordered pools. Memory runs out soon, and regions are small.
var (
	asyncSmall = Setting{"async", `{"region_bytes":16384}`, `{"capacity":65536,"align":256}`}
	asyncTiny  = Setting{"async", `{"region_bytes":2048}`, `{"capacity":2048,"align":256}`}
	asyncKept  = Setting{"async:keep", `{"region_bytes":16384}`, `{"capacity":65536,"align":256}`}
)

// streampoolBugs returns bugs of the pool and of the strategy that is one.
func streampoolBugs() []Bug {
	return []Bug{
		{ID: "streampool/busy-not-noted", Setting: asyncKept, Breaks: []string{"Q5"}, Or: []string{"I9"}, Minimal: "a 1",
			Doc: "a stream that gets its first free chunk is still passed over"},
		{ID: "streampool/split-loses-bytes", Setting: asyncSmall, Breaks: []string{"Q1"}, Minimal: "a 1",
			Doc: "the remainder of a split is a quantum short"},
		{ID: "streampool/misses-left", Setting: asyncKept, Breaks: []string{"I5", "Q2"}, Or: []string{"I64"}, Minimal: "a 1\na 1",
			Doc: "a freed chunk does not take along the one before it"},
		{ID: "streampool/misses-right", Setting: asyncKept, Breaks: []string{"I5", "Q2"}, Or: []string{"I64"}, Minimal: "a 1",
			Doc: "a freed chunk does not take along the one behind it"},
		{ID: "streampool/lost-remainder", Setting: asyncSmall, Breaks: []string{"Q3"}, Or: []string{"I9"}, Minimal: "a 1\na 1",
			Doc: "a free chunk that does not end its region is put into no map"},
		{ID: "streampool/not-indexed", Setting: asyncSmall, Breaks: []string{"Q4"}, Minimal: "a 1",
			Doc: "a block is not entered into the index of addresses"},
		{ID: "streampool/whole-is-nobodys", Setting: asyncSmall, Breaks: []string{"Q5"}, Minimal: "a 1",
			Doc: "a freed chunk that takes one of nobody along is nobody's"},
		{ID: "streampool/waits-for-one-more", Setting: asyncSmall, Breaks: []string{"Q6"}, Or: []string{"I50"}, Minimal: "a 1\nuse 0 1",
			Doc: "a pending chunk waits for one stream more than use it"},
		{ID: "streampool/row-lost", Setting: asyncSmall, Breaks: []string{"Q7"}, Minimal: "a 1",
			Doc: "a retired row is put into no list"},
		{ID: "streampool/keeps-mark", Setting: asyncSmall, Breaks: []string{"Q7"}, Minimal: "a 1\nf 0\na 1",
			Doc: "what is granted again goes on to hold its mark"},
		{ID: "streampool/pending-drift", Setting: asyncSmall, Breaks: []string{"Q8"}, Or: []string{"I16", "I50"},
			Minimal: "a 1\nuse 0 1", Doc: "the pending bytes do not fall"},
		{ID: "streampool/done-at-once", Setting: asyncSmall, Breaks: []string{"I49"}, Or: []string{"I50"}, Minimal: "a 16384\nf 0\na 16384 stream=1",
			Doc: "a mark is taken for done when the device is asked"},
		{ID: "streampool/no-wait", Setting: asyncSmall, Breaks: []string{"I49"}, Minimal: "a 16384\nf 0\na 16384 stream=1",
			Doc: "a stream is not made to wait for what it reuses"},
		{ID: "streampool/earlier-mark-holds", Setting: asyncKept, Breaks: []string{"I49"},
			Minimal: "a 1\na 1\nf 0\nf 0\na 16384 stream=1", Doc: "of two chunks that are joined the earlier mark holds"},
		{ID: "streampool/first-use-only", Setting: asyncSmall, Breaks: []string{"I50"}, Or: []string{"I49"},
			Minimal: "a 1\nuse 0 1\nuse 0 2\nf 0\ndrain 2\npoll", Doc: "a freed block waits for one of the streams that were recorded"},
		{ID: "streampool/passes-exact-fit", Setting: asyncTiny, Breaks: []string{"I26"}, Minimal: "a 1\na 1025",
			Doc: "a free chunk of exactly the size asked for is passed over"},
		{ID: "streampool/trim-keeps-lowest", Setting: asyncSmall, Breaks: []string{"I29"}, Minimal: "a 1",
			Doc: "a trim keeps the lowest region"},
		{ID: "streampool/close-keeps-events", Setting: asyncSmall, Breaks: []string{"I32"}, Minimal: "a 1",
			Doc: "closing keeps the events of what is not finished"},
		{ID: "async/stream-unrecorded", Setting: asyncSmall, Breaks: []string{"I50"}, Minimal: "a 1\nuse 0 1",
			Doc: "a stream that is recorded is forgotten"},
		{ID: "async/pending-forgotten", Setting: asyncSmall, Breaks: []string{"I16", "A1"}, Minimal: "a 1\nuse 0 1",
			Doc: "pending bytes are not active"},
	}
}
