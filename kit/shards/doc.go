// Package shards holds the parts of a strategy that many threads call at once. [Set] is a set of
// strategies with a lock each, and counters that are exact for all of them together. [Device]
// shares one device among them and finds the shard that holds an address without a lock.
//
// # Locks
//
// A call takes the lock of one shard. Counters, walks and checks take every lock, in the order of
// the shards. A shard takes the lock of the device last. So every call happens at one moment, and
// no two calls wait for each other.
//
// # Peaks
//
// The peak of a sum is not the sum of the peaks. Each shard therefore has room: the bytes that it
// may hold before the sum can exceed the peak. The room of all shards and the spare of the set are
// together the peak. So while every shard stays within its room, the peak is correct without
// reading the other shards. A shard that needs more takes a batch of the spare, and returns surplus
// room. If the spare is used up, the shard takes every lock and recomputes the peak. In steady
// state that is rare. While the peak grows, every Alloc does it. The peak of the bytes held from
// the device is counted under the device's lock.
package shards
