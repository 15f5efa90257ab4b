// Package history makes request traces of the histories in PyTorch's memory snapshots.
//
// A history names blocks by address, begins anywhere, and tells beside what the program asked for what
// the allocator did about it. A trace has the program's side alone: each stay at an address is an
// allocation with an id of its own, and what was live when the history begins comes first.
//
// # The opening state
//
// The file has the blocks that are there at its end. Read backwards, an allocation takes its block
// away, a completed free brings it back as pending, and a requested one makes a pending block live. What
// is left was there at the beginning. Blocks that are pending then were given back by the program
// before the history begins; they are freed by the trace's first events. If a history has no requested
// frees at all, its completed ones are what the program did.
//
// # Frees
//
// PyTorch writes two entries for each free, one behind the other unless another stream still used the
// memory. Such a pair is one Free event. Otherwise the Free stands where it was requested and a
// Completed where the memory became reusable. Blocks that are pending at the end are completed by the
// trace's last events, so that a replay keeps their memory occupied as the recorded program did.
//
// # What does not fit
//
// Nothing is refused: whatever an entry says that cannot have been is left out or bridged, and counted in
// the [Report], with the first place. The report also tells what such a file cannot know.
//
// # Cost
//
// Everything is kept in columns, about 120 bytes for each entry with its event of the trace. A million
// entries take a fraction of a second.
package history
