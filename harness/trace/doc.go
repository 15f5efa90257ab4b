// Package trace is the event model of a memory trace, and its readers and writers.
//
// A [Trace] is a [Header] and a sequence of [Event]s: the requests of a program to its allocator,
// in order. It has no addresses, so any strategy can serve it. Ids name allocations. Each also has
// a small dense number, its slot, so that a replay needs no map. A [Builder] makes traces by the
// same rules as the readers.
//
// # The native text form
//
// One event a line, made to be read and edited by hand. Positional fields come first, then
// key=value in any order. Blank lines are skipped, and '#' begins a comment.
//
//	# vramyard-trace 1
//	# source=shrunk from seed 17
//	live 7 2MiB stream=1
//	a 0 1000 align=512 hint=low tag="layer 3"
//	use 0 1
//	mark "step 1"
//	f 0
//	badfree 0
//	print stats
//
// The lines:
//
//	a ID SIZE [align=] [stream=] [hint=low|high] [before=] [tag=] [ORIGIN]    Alloc
//	f ID                                                             Free
//	live ID SIZE [align=] [stream=] [tag=] [ORIGIN]                 LiveAtStart; before all others
//	done ID                                                          Completed
//	use ID STREAM                                                    Use
//	mark TEXT                                                        Mark
//	conf TEXT                                                        Conf
//	trim                                                             Trim
//	pause [TAG]                                                      Pause
//	resume [TAG]                                                     Resume
//	frontier N                                                       Frontier
//	drain STREAM                                                     Drain
//	poll                                                             Poll
//	pool begin P [stream=] [options=]                                PoolBegin; of all streams without one
//	pool end P                                                       PoolEnd
//	pool release P                                                   PoolRelease
//	refused SIZE [align=] [stream=] [tag=] [ORIGIN]                 Refused
//	badfree ID [+OFFSET]                                             BadFree of an allocation, live or freed
//	badfree 0xADDR, badfree null                                     BadFree of an address
//	fault [N]                                                        Fault; 1 without a number
//	clear                                                            ClearStats
//	print stats|map|totals                                           Print
//
// The options of a pool are use_on_oom, no_split or both with a comma between them, as of
// torch.cuda.MemPool. They last until the pool is gone.
//
// ORIGIN is site=, thread= and life=mark|step|run, each of which may be omitted.
//
// Every line also accepts t=NANOSECONDS, which never decreases. SIZE and align are bytes, with or
// without a unit ("512KiB"). site is a hash of the call stack, 0x and hexadecimal digits; thread
// is the number of a host thread. Both are 0 where they are unknown, which is the same as leaving
// them out. life is when the program expects to free the block: before the next mark, before the
// step ends, or never (run). A text with blanks, quotes, '=', '#' or characters that do not print
// is quoted as in Go. Ids may be any numbers; one may be used again once it is freed. Comments of
// the form key=value in front of the first event are kept in the header, and name= replaces the
// file's name.
// In counterexamples, fault-nth=N means that device call N fails, including the calls that build
// and close the strategy, and request-tags=ids means that the tag of each request is its id.
//
// The first line is optional. Its number is the version of the form; readers reject unknown
// versions.
//
// # Other forms
//
// Package formats recognizes files by content and reads the formats of other programs. This package
// reads two more forms.
//
// CSV is the form of the recorded traces; it is recognised by its header line:
//
//	seq,op,id,bytes,stream,time_us,tag[,site,thread[,life]]
//
// The golden vectors use the dialects "bfc", "xdl" and "torch", with one letter a line. Their
// frees of unknown ids are skipped, as in the harnesses of the originals.
//
// # Hostile input
//
// A reader never panics. A line is at most 16 MiB, compressed data is read as a stream, and events,
// tags and tables are charged to Options.Memory, so memory is bounded for any input. A byte order
// mark and Windows line endings are accepted, a NUL byte is not.
package trace
