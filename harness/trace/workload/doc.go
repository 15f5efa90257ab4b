// Package workload provides traces that no file holds: the recorded training runs built into the
// program, the generated yardstick workloads, and simulated servers of language models.
//
// # Recordings
//
// [Recordings] lists memory traces of real training runs, recorded at PyTorch's own allocator
// interface. They are part of the binary, so that every comparison can use them. recorded/README.md
// describes how they were recorded, and their limits.
//
// # Yardstick workloads
//
// A [Shape] is an entry of the catalogue, [All]. With its parameters settled it is a [Workload],
// which yields its operations one by one, sums them up, or stores them as a [Program] or a trace.
//
// The operations come in three parts. The fill builds up the live blocks. The settle, which only
// the mixes have, is an untimed churn that lets placement reach its steady state. The churn is
// timed; it frees and allocates in pairs.
//
//	w1          N blocks live; a random one is replaced. Lognormal-like sizes, 256 B to 64 MiB
//	w2          a transformer in training: activations in stack order, persistent weights
//	w3          256 buffers that grow: the new block is allocated before the old one is freed
//	lognormal   as w1 with a median of 4 KiB, a sigma of 1.5 and at most 16 MiB; settles first
//	loguniform  as lognormal, every octave of sizes equally likely
//	uniform     as lognormal, every size equally likely
//
// docs/workloads.md defines each of them to the last bit. Only integers are used, so that a seed
// gives the same operations on every machine. [Summary.Hash] is a fingerprint of the operations:
// two programs with equal hashes, for instance ours and one in C++, ran the same sequence. The
// tests hold the published values.
//
// # Servers
//
// [Serving] simulates a server of a language model that gets the requests of a published log, which
// [ReadServingLog] reads. Its trace has the weights, the KV caches and the activations.
//
// # Cost
//
// An operation takes 8 bytes in a Program and 64 in a trace. Making one takes tens of nanoseconds.
// Parameters that would exhaust memory are refused, see [MaxOperations].
package workload
