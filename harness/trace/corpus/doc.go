// Package corpus holds the manifest of the corpus, a versioned archive of traces outside the
// program.
//
// An object of the archive is a compressed trace, named by the SHA-256 of the decompressed trace,
// so a name never stands for two contents. The manifest is part of the program: it has the hash,
// the origin and the statistics of each trace. A trace is either inside the program, see package
// workload, or an object that [Entry.Fetch] copies from the archive to a folder and that
// [Entry.Open] reads there. Both compare the hash.
//
// The package also checks traces of any origin: [Lint].
package corpus
