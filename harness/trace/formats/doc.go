// Package formats opens files of every supported format that holds a memory trace.
//
// [Open] recognizes the format by content, never by name. [All] lists the formats, each with its
// recognizer, its reader and the information that it lacks. Files may be compressed with gzip, xz
// or zstd. The header of a trace records the missing information under [trace.AbsentKey], and
// guesses and omissions under keys of their own, so that a conversion keeps them.
//
// # Logs by address
//
// Most logs name blocks by address, which is reused, and begin in the middle of a run. All are
// interpreted alike. Each lifetime at an address is an allocation with its own id. A block that is
// freed without an earlier call was live at the start. An allocation at the address of a live block
// ends that block: its free was lost. A free of an address that is already free is omitted: its
// allocation was lost. The header counts all these cases.
//
// # Hostile input
//
// A reader never panics, and allocates nothing for a claimed length before the bytes have arrived.
// Its memory is charged to a budget of Options.Memory bytes. An error is one line with the line or
// the byte offset in the decompressed content.
package formats
