// Package script runs data-driven tests of strategies. A file in testdata holds groups of calls,
// and after each group the results, the calls of the device and the heap.
//
// The test of a strategy is one line:
//
//	func TestScripts(t *testing.T) { script.Run(t, setting.SpecOf("buddy", "", buddy.New)) }
//
// It runs testdata/*.txt. With -rewrite it writes the expected parts; review the difference. A
// group is one call a line, then "----", then the expected part up to an empty line. A line between
// groups that starts with # is a comment. The calls:
//
//	new [preset=NAME] [capacity=SIZE] [FIELD=VALUE]...   build the strategy over a simulated device
//	alloc NAME SIZE [align=SIZE] [stream=N] [hint=low|high] [before=N]
//	free NAME...              free blocks; a name stays known, so that it can be freed twice
//	record NAME stream=N      the block is in use on another stream
//	work stream=N             queue work that lasts until the stream is drained
//	drain stream=N            the queued work of the stream is done
//	refuse calls=N            the device refuses the next N calls
//	frontier count=N          the frontier of timestamped frees
//	trim, poll, close         the call of that name
//	walk                      show the heap without a call
//
// A field of the configuration has its JSON name; a string needs no quotes. Regions are numbered in
// the order in which they are reserved: R2+8KiB is the address 8 KiB above the start of the second
// one. In the heap each region is a line with the sizes of its chunks below it: offset, size,
// state, class, and for a live or pending block its name and the requested bytes. Stream, pool and
// owner are shown if they are not zero. After each group [alloc.Inspector] Check must pass.
package script
