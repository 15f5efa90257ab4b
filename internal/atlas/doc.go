// Package atlas tells which of many disjoint ranges an address lies in.
//
// A strategy that cuts memory into pieces of its own, as slabs are, finds the piece of a freed
// address here instead of keeping every block in a table. Ranges have labels, numbers from one
// up, and who keeps their ends tells the atlas when it asks.
//
// # Data structure
//
// A trie whose depth follows the ranges. Addresses are cut into areas of 1 MiB. Where no more
// than one range reaches into an area its entry is that label, or zero; otherwise it leads to a
// node of sixteen entries, which is one cache line, each for a sixteenth of the area, and so on
// down. A node goes when its last entry does.
//
// So what counts is how many ranges there are, not how large they or the memory between them
// is. That is what flat tables of pages lack: slabs of a slab-buddy are of 2 KiB to 512 KiB
// and apart by 2 MiB on average, among blocks of others, so that labels of pages of 2 KiB would
// take a thousand entries for each slab. Here a range takes a few entries or a
// node of 64 bytes, and a lookup reads one to three lines.
//
// The entries of areas lie in windows, slices without holes. Nearly always there is one, since
// what a device gives lies together; a region that lies far off begins another one, and lookups
// in that cost a binary search over windows. A window has at most a bound in proportion to the
// areas in use, so that the memory taken has one too, wherever regions lie.
//
// # Exactness
//
// An entry stands for its whole extent, of which its range may be a part. [Atlas.Get] returns
// the only range that an address can be in, and who asks compares with that range's ends, which
// it is about to read anyway.
package atlas
