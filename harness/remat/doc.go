// Package remat reads the logs of training steps that are to trade time for memory: tensors that
// are evicted within a budget are computed again when they are read. This is dynamic tensor
// rematerialization (DTR).
//
// # Logs
//
// [ReadFile] reads the log of the authors of DTR, JSON lines of operators, sizes, views, mutations,
// copies and releases, and DTRLOG/1, the same lines with more optional fields: FLOPS, BYTES,
// WORKSPACE, RECOMPUTABLE, STREAM and SEED of a CALL or MUTATE. It lowers them to a [Schedule] of
// four kinds of steps, in which every operator is functional: a mutation becomes an operator with
// a new output, and its name is bound to that. A [Builder] makes schedules without a log.
//
// # Sources
//
// Kirisame, Lyubomirsky, Haan, Brennan, He, Roesch, Chen, Tatlock: Dynamic Tensor Rematerialization,
// ICLR 2021, and its simulator in github.com/uwsampl/dtr-prototype.
package remat
