// Package formats opens files of every kind that holds a memory trace.
//
// [Open] looks at the content, never at the name: [All] is the table of what is recognised, each
// entry with what tells it, what reads it and what it cannot know. Files may be compressed with
// gzip, xz or zstd. What a file cannot know stands in the header of the trace under
// [trace.AbsentKey], and what had to be guessed or was left out beside it, so that it stays with
// the trace in every other form.
//
// # Logs by address
//
// Most logs name a block by its address, which is used again and again, and begin in the middle of
// a run. They are all understood in the same way: each stay at an address is an allocation of its
// own; a block that is freed and was never seen before was live at the start; one that is allocated
// where another is live ends the other's life, whose free was lost; a free where nothing is any
// more is the end of a block whose allocation was lost, and is left out. All are counted in the
// header.
//
// # Hostile input
//
// A reader never panics, and reserves nothing for a length before the bytes have come. Whatever it
// makes of the content is taken from a budget of Options.Memory bytes. An error is one line with
// the line or the byte of the decompressed content.
package formats
